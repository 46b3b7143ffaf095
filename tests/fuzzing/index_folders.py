"""Indexes that somebody edited or cut, hashes mended or not: searched and changed, or refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.models import mutated_bytes, mutated_tree
from rejoinder.errors import RejoinderError
from rejoinder.index.files import FILE, IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts
from rejoinder.io.files.hashed import sealed

DIM = 3
_TEXTS = {"a": "one", "b": "très 😀", "": "", "7": "seven", "long": "x" * 300}


def rows(count: int) -> Any:
    """(count, DIM) unit rows."""
    drawn = np.random.default_rng(count).standard_normal((count, DIM)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of an index."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def mutated(random: Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with one to three faults; most have their hashes mended."""
    files, signed = dict(files), random.random() < 0.8
    for _ in range(random.choice((1, 1, 2, 3))):
        name = FILE if random.random() < 0.5 else random.choice(sorted(files))
        if name == FILE and random.random() < 0.9:
            try:
                tree = mutated_tree(random, json.loads(files[FILE]))
            except (ValueError, RecursionError):
                continue
            files[FILE] = json.dumps(tree).encode()
        elif random.random() < 0.03 and name != FILE:
            del files[name]
        else:
            changed = mutated_bytes(random, files[name])
            if (
                random.random() < 0.5 and files[name]
            ):  # of the old size: the size is looked at first
                turned = bytearray(files[name])
                turned[random.randrange(len(turned))] ^= 1 << random.randrange(8)
                changed = bytes(turned)
            files[name] = changed
    return _mended(files) if signed else files


def _mended(files: dict[str, bytes]) -> dict[str, bytes]:
    try:
        tree = json.loads(files[FILE])
    except (ValueError, RecursionError):
        return files
    if not isinstance(tree, dict):
        return files
    for entry in tree["segments"] if isinstance(tree.get("segments"), list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("files"), dict):
            continue
        for name in entry["files"]:
            content = files.get(f"{entry.get('name')}/{name}")
            if content is not None:
                facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
                entry["files"][name] = facts
    tree.pop("sha256", None)
    return {**files, FILE: json.dumps(sealed(tree)).encode()}


def use(folder: Path, random: Random) -> None:
    """Opens an index and does one thing with it."""
    index = TextIndex(folder)
    assert len(index) >= 0
    for hits in index.nearest(rows(2), random.choice((1, 3, 100))):
        for hit in hits:
            assert isinstance(hit.id, str)
            assert isinstance(hit.text, str)
    queries = ["seven", "très x 😀"]
    found = index.matching(queries) if random.random() < 0.5 else index.best(queries, rows(2))
    assert all(isinstance(hit.text, str) for hits in found for hit in hits)
    "a" in index  # noqa: B015 -- whether it is there, looking for it ends
    match random.randrange(7):
        case 0:
            index.check()
        case 1:
            index.add_encoded([EncodedTexts(["new", "a"], ["x", "y"], rows(2))], update=True)
        case 2:
            index.delete(["a"])
        case 3:
            index.compact()
            index.check()
        case 4:
            index.get("b")


def checker(folder: Path) -> Callable[[Random], bool]:
    """What uses one changed index; true: it could be used."""
    model = IndexModel("model", "ab" * 32, None, None)
    parts = [EncodedTexts(list(_TEXTS), list(_TEXTS.values()), rows(len(_TEXTS)))]
    index = create_index(folder / "index", Manifest(model, DIM), parts)
    index.add_encoded([EncodedTexts(["c", "d"], ["three", "four"], rows(2))])
    index.delete(["7"])
    files, place = contents(folder / "index"), folder / "edited"

    def checked(random: Random) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        for name, content in mutated(random, files).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        try:
            use(place, random)
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            return False
        return True

    return checked
