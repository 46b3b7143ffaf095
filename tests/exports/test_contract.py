"""The contract of readers of exports: each is tested with its made-up and its real exports.

It covers every module that `FORMATS` names. What one needs beyond it is in a separate file.
"""

import copy
import json
import random
import shutil
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from export_samples import write
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS, format_of_export
from rejoinder.exports.base import Malformed, Message
from rejoinder.exports.files import opened

SAMPLES = {name: import_module(f"export_samples.{name}") for name in FORMATS}
REAL = [(name, path) for name, sample in SAMPLES.items() for path in sample.REAL]


@pytest.fixture(params=FORMATS)
def name(request) -> str:
    return str(request.param)


@pytest.fixture
def sample(name) -> Any:
    return SAMPLES[name]


@pytest.fixture
def folder(sample, tmp_path) -> Path:
    return write(sample.FILES, tmp_path / "export")


def read(name: str, path: Path) -> list[Message | Malformed]:
    with opened(path) as files:
        return list(FORMATS[name].read(files))


def test_messages_are_those_of_the_export(name, sample, folder):
    assert read(name, folder) == sample.MESSAGES


@pytest.mark.parametrize("top", ["", "team/"])
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_archives_hold_the_same_messages(name, sample, folder, tmp_path, kind, top):
    path = tmp_path / f"export.{kind}"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    random.Random(0).shuffle(files)
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._x.json", b"\0")
            for file in files:
                archive.write(file, top + file.relative_to(folder).as_posix())
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as tar:
            for file in files:
                tar.add(file, top + file.relative_to(folder).as_posix())
    assert format_of_export(path) is FORMATS[name]
    assert read(name, path) == sample.MESSAGES


def test_content_says_which_format_it_is(name, sample, folder, tmp_path):
    with opened(folder) as files:
        assert [other for other in FORMATS if FORMATS[other].recognises(files)] == [name]
    files = [path for path in folder.rglob("*") if path.is_file()]
    if len(files) == 1:
        assert format_of_export(files[0]) is FORMATS[name]
        assert read(name, files[0]) == sample.MESSAGES


def test_messages_name_those_that_they_answer(sample):
    ids = [message.id for message in sample.MESSAGES]
    assert len(set(ids)) == len(ids)
    assert not [one for one in sample.MESSAGES if one.parent == one.id]
    assert any(one.parent in ids for one in sample.MESSAGES) or not any(
        one.parent for one in sample.MESSAGES
    )
    for source in {message.source for message in sample.MESSAGES}:
        times = [one.time for one in sample.MESSAGES if one.source == source and one.time]
        assert times == sorted(times)


def test_malformed_messages_are_told_and_the_rest_is_read(name, sample, folder):
    write(sample.BROKEN, folder)
    items = read(name, folder)
    malformed = [item for item in items if isinstance(item, Malformed)]
    assert malformed
    assert all(item.line >= 1 and item.problem for item in malformed)
    assert [item for item in items if isinstance(item, Message)] == sample.MESSAGES


def test_an_empty_export_has_no_messages(name, sample, tmp_path):
    assert read(name, write(sample.EMPTY, tmp_path)) == []


def test_damage_is_one_sentence(name, folder):
    """Whatever bytes change, or are missing: an error with a sentence, or other messages."""
    draw = random.Random(0)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for number in range(200):
        path = draw.choice(files)
        content = path.read_bytes()
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(len(damaged))] = draw.choice(b'\x00\xff"{}[]0<>\n:a')
        path.write_bytes(damaged[: draw.randrange(len(damaged))] if number % 4 == 0 else damaged)
        try:
            for item in read(name, folder):
                if isinstance(item, Message):
                    item.text.encode()  # no half of a surrogate pair
        except InputError:
            pass
        path.write_bytes(content)


def test_values_of_other_types_are_told(name, sample, folder):
    """Whatever is null, a number or a list: an error with a sentence, or other messages."""
    draw = random.Random(0)
    trees = {file: tree for file, tree in sample.FILES.items() if isinstance(tree, dict | list)}
    for _ in range(100 if trees else 0):
        file = draw.choice(sorted(trees))
        (folder / file).write_text(json.dumps(_changed(trees[file], draw)))
        try:
            for item in read(name, folder):
                if isinstance(item, Message):
                    assert isinstance(item.is_bot, bool), item
                    assert isinstance(item.edited, bool), item
        except InputError:
            pass
        (folder / file).write_text(json.dumps(trees[file]))


def _changed(tree: Any, draw: random.Random) -> Any:
    """Returns a copy of a tree in which one to three values have become others or are gone."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.randint(1, 3)):
        nodes = list(_nodes(tree))
        if nodes:
            node, key = draw.choice(nodes)
            node[key] = draw.choice([None, 0, -1.5, True, "", "x", [], {}, [None], {"id": {}}])
            if isinstance(node, dict) and draw.random() < 0.3:
                del node[key]
    return tree


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _nodes(tree[key])


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "path"), REAL, ids=[path for _, path in REAL])
def test_real_exports_are_read(name, path, shared_data, tmp_path):
    export = shared_data / "exports" / path
    found = format_of_export(export)
    assert found is not None
    assert found.name == name
    items = read(name, export)
    messages = [item for item in items if isinstance(item, Message)]
    assert not [item for item in items if isinstance(item, Malformed)]
    counts = Counter[str]()
    for message in messages:
        counts["bots"] += message.is_bot
        counts["system"] += message.is_system
        counts["answers"] += message.parent is not None
    found_counts = (len(messages), counts["bots"], counts["system"], counts["answers"])
    assert found_counts == SAMPLES[name].REAL[path]
    texts = {message.id: message.text for message in messages}
    assert all(texts[message.id] == message.text for message in messages)
    threads: dict[str, str | None] = {}
    for one in messages:  # by a wrong clock, a mail may come before that which it answers
        assert one.thread is None or threads.get(one.parent or "") in (None, one.thread)
        threads[one.id] = one.thread
    if export.is_dir() and len(messages) < 5_000:  # else it takes seconds
        packed = shutil.make_archive(str(tmp_path / "packed"), "zip", export)
        assert read(name, Path(packed)) == items


def test_a_path_that_is_no_export(tmp_path):
    plain = tmp_path / "a.txt"
    plain.write_text("Good morning.\nGood evening.\n")
    assert format_of_export(plain) is None
    whole = shutil.make_archive(str(tmp_path / "cut"), "zip", tmp_path, "a.txt")
    cut = Path(whole)
    assert format_of_export(cut) is None
    for content in (cut.read_bytes()[:-30], b"PK\x03\x04" + bytes(40)):
        cut.write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            format_of_export(cut)
