"""The folder of an index: what a search finds, what a change leaves, how damage is reported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rejoinder.errors import InputError, StorageError
from rejoinder.index import folder, state
from rejoinder.index.files import FILE, IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.matching import search_segments
from rejoinder.index.segment import BY_MEANING, BY_WORDS, FILES, EncodedTexts
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import sealed

DIM = 4
EMPTY = Manifest(IndexModel("model", "ab" * 32, None, None), DIM)


def vector(text):
    """A unit row that is the same for the same text, of few different ones so that scores tie."""
    row = np.random.default_rng(len(text)).standard_normal(DIM).astype(np.float32)
    return row / np.linalg.norm(row)


def encoded(texts):
    """EncodedTexts of a dict of texts by id."""
    rows = np.array([vector(text) for text in texts.values()], np.float32).reshape(-1, DIM)
    about = [{"author": text} if text else {} for text in texts.values()]
    return EncodedTexts(list(texts), list(texts.values()), rows, about)


def made(tmp_path, texts, name="index"):
    return create_index(tmp_path / name, EMPTY, [encoded(texts)])


def found(index, query, top_k=100):
    [hits] = index.nearest(vector(query)[None], top_k)
    assert all(hit.about == ({"author": hit.text} if hit.text else {}) for hit in hits)
    return [(hit.id, hit.text) for hit in hits]


def matched(index, query, top_k=100):
    [hits] = index.matching(query, top_k)
    return [(hit.id, hit.text) for hit in hits]


def scanned(texts, query, top_k=100):
    """What a plain scan of texts in their order finds."""
    scores = {name: float(vector(text) @ vector(query)) for name, text in texts.items()}
    order = sorted(texts, key=lambda name: -round(scores[name], 5))
    return [(name, texts[name]) for name in order][:top_k]


TEXTS = {"a": "one", "b": "three", "ü": "très 😀\n\tlong", "": "", "d": "one"}


def test_texts_and_ids_come_back_as_they_were(tmp_path):
    index = made(tmp_path, TEXTS)
    assert len(index) == 5
    assert {name: index.get(name) for name in TEXTS} == TEXTS
    assert "ü" in index
    assert "x" not in index
    assert 3 not in index
    assert found(index, "one", 2) == [("a", "one"), ("d", "one")]
    with pytest.raises(InputError, match="'x'"):
        index.get("x")


changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "delete", "compact"]),
        st.dictionaries(
            st.sampled_from("abcdefgh"),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
            max_size=4,
        ),
    ),
    max_size=6,
)


@settings(max_examples=15)
@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    ),
    changes,
)
def test_any_changes_leave_what_a_plain_scan_finds(tmp_path_factory, texts, steps):
    folder = tmp_path_factory.mktemp("any")
    index, expected = made(folder, texts), dict(texts)
    for kind, more in steps:
        if kind in ("add", "update"):
            if kind == "add" and more.keys() & expected.keys():
                with pytest.raises(InputError, match=r"'[a-h]'"):
                    index.add_encoded([encoded(more)])
                continue
            index.add_encoded([encoded(more)], update=kind == "update")
            expected = {k: v for k, v in expected.items() if k not in more} | more
        elif kind == "delete":
            if more.keys() - expected.keys():
                with pytest.raises(InputError, match=r"'[a-h]'"):
                    index.delete(list(more))
                continue
            index.delete(list(more))
            expected = {k: v for k, v in expected.items() if k not in more}
        else:
            index.compact()
    for opened in (index, TextIndex(index.folder)):
        assert len(opened) == len(expected)
        for query in ("", "ab", "abcd"):
            assert sorted(found(opened, query)) == sorted(expected.items())
            assert found(opened, query, 3) == scanned(expected, query, 3)
        opened.check()


def test_an_id_that_is_given_twice_is_refused_and_nothing_is_left(tmp_path):
    twice = EncodedTexts(["a", "b", "a"], ["x", "y", "z"], np.zeros((3, DIM), np.float32))
    with pytest.raises(InputError, match="'a'"):
        create_index(tmp_path / "index", EMPTY, [twice])
    assert list(tmp_path.iterdir()) == []
    index = made(tmp_path, {"q": "one"})
    before = sorted(path.name for path in index.folder.iterdir())
    with pytest.raises(InputError, match="'a'"):
        index.add_encoded([twice])
    assert sorted(path.name for path in index.folder.iterdir()) == before
    assert found(index, "one") == [("q", "one")]


def test_ids_of_one_key_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.index.files.blake2b_number", lambda content: len(content))
    index = made(tmp_path, {"aa": "one", "bb": "two", "c": "three"})
    assert [index.get(name) for name in ("bb", "aa", "c")] == ["two", "one", "three"]
    assert "dd" not in index
    index.delete(["aa"])
    assert "aa" not in index
    assert "bb" in index


@pytest.mark.parametrize("place", ["write_segment", "write"])
def test_a_change_that_fails_changes_nothing(tmp_path, monkeypatch, place):
    index = made(tmp_path, TEXTS)

    def full(*_arguments, **_named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if place == "write":
            patched.setattr(Manifest, "write", full)
        else:
            patched.setattr(f"rejoinder.index.folder.{place}", full)
        with pytest.raises(StorageError, match="space"):
            index.add_encoded([encoded({"new": "four"})])
    again = TextIndex(index.folder)
    assert dict(found(again, "one")) == TEXTS
    again.add_encoded([encoded({"new": "four"})])  # removes what the other left
    names = {path.name for path in index.folder.iterdir()}
    assert names == {FILE, *(entry.name for entry in again.manifest.segments)}
    assert len(again) == 6


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_named(tmp_path, name):
    index = made(tmp_path, TEXTS)
    [entry] = index.manifest.segments
    path = index.folder / entry.name / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=rf"{name} .*\d+ bytes"):
        TextIndex(index.folder)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match=path.stem):
        TextIndex(index.folder).check()
    path.unlink()
    with pytest.raises(InputError, match=name):
        TextIndex(index.folder)


def test_a_changed_byte_is_named(tmp_path):
    index = made(tmp_path, TEXTS)
    [entry] = index.manifest.segments
    for name, place, byte in (("texts.bin", 10, 0xFF), ("rows", 2, 0x77), ("keys", 0, 0x77)):
        path = index.folder / entry.name / name
        whole = path.read_bytes()
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        opened = TextIndex(index.folder)
        try:
            assert len(found(opened, "one")) == 5
            assert all(name in opened or name not in opened for name in TEXTS)
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017 -- or it is found
        path.write_bytes(whole)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("top_k", [1, 5])
def test_embeddings_that_are_not_finite_are_refused(tmp_path, dtype, value, top_k):
    index = create_index(tmp_path / "index", replace(EMPTY, dtype=dtype), [encoded(TEXTS)])
    path = damaged(index, value)
    queries = np.array([vector("one"), vector("three"), np.zeros(DIM)], np.float32)
    with pytest.raises(InputError, match="scores") as caught:
        TextIndex(index.folder).nearest(queries, top_k)
    assert str(path) in str(caught.value)
    assert "index check" in str(caught.value)
    index.delete(["b"])  # the damage shows in a deleted text, too
    with pytest.raises(InputError, match="scores"):
        TextIndex(index.folder).nearest(queries, top_k)


def test_huge_embeddings_are_refused(tmp_path):
    index = made(tmp_path, TEXTS)
    damaged(index, 3e38, at=slice(None))
    opened = TextIndex(index.folder)
    # products that are infinite with some queries alone, of either sign, and none at all
    for query in ([0.5, 0.5, 0.5, 0.5], [-0.5, -0.5, -0.5, -0.5]):
        queries = np.array([[1, 0, 0, 0], query], np.float32)
        with pytest.raises(InputError, match="scores"):
            opened.nearest(queries, 5)


def damaged(index, value, at=1):
    """Puts a number into the embedding of the second text, and returns the file."""
    [entry] = index.manifest.segments
    path = index.folder / entry.name / "embeddings.bin"
    rows = np.fromfile(path, index.manifest.dtype).reshape(-1, DIM)
    rows[1, at] = value
    rows.tofile(path)
    return path


def test_a_folder_that_is_not_an_index_is_refused(tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        TextIndex(tmp_path)
    index = made(tmp_path, TEXTS)
    manifest = (index.folder / FILE).read_text("utf-8")
    (index.folder / FILE).write_text(manifest.replace('"dim": 4', '"dim": 5'), "utf-8")
    with pytest.raises(InputError, match=r"index\.json.*SHA-256"):
        TextIndex(index.folder)
    (index.folder / FILE).write_text(manifest.replace('"format_version": 3', '"format_version": 9'))
    with pytest.raises(InputError, match=r"\b9\b.*\b3\b"):
        TextIndex(index.folder)


def test_one_process_changes_an_index_at_a_time(tmp_path):
    index = made(tmp_path, TEXTS)
    other = TextIndex(index.folder)
    index.add_encoded([encoded({"new": "four"})])
    other.add_encoded([encoded({"newer": "five"})])  # sees what the first one added
    assert {"new", "newer"} <= {name for name, _ in found(TextIndex(index.folder), "one")}
    with claim(index.folder):
        index.delete(["new"])  # claims nest within a process
    assert "new" not in index


ADDING = """
import sys
from pathlib import Path
import numpy as np
from rejoinder.errors import BusyError
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts

index = TextIndex(Path(sys.argv[1]))
part = EncodedTexts([None] * 3, [sys.argv[2]] * 3, np.zeros((3, 4), np.float32))
print("open", flush=True)
sys.stdin.readline()
for _ in range(5):
    while True:
        try:
            index.add_encoded([part])
            break
        except BusyError:
            pass
"""


def test_two_processes_give_different_numbers_to_texts_without_ids(tmp_path):
    index = made(tmp_path, TEXTS)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ADDING, index.folder, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("first", "second")
    ]  # fmt: skip
    assert [process.stdout.readline() for process in both] == ["open\n"] * 2
    for process in both:  # both have read which number is next
        process.stdin.write("\n")
        process.stdin.close()
    assert [process.wait() for process in both] == [0, 0]
    opened = TextIndex(index.folder)
    assert len(opened) == len(TEXTS) + 30
    texts = [opened.get(str(number)) for number in range(1, 31)]
    assert sorted(texts) == ["first"] * 15 + ["second"] * 15
    assert opened.manifest.next_id == 31


def test_an_empty_index_and_an_empty_addition(tmp_path):
    index = made(tmp_path, {})
    assert (len(index), found(index, "one")) == (0, [])
    assert index.add_encoded([]) == 0
    assert index.manifest.segments == ()
    index.add_encoded([encoded({"a": "one"})])
    index.delete(["a"])
    assert (len(index), found(index, "one")) == (0, [])
    index.compact()
    assert index.manifest.segments == ()


def test_a_segment_that_is_removed_while_an_index_is_opened(tmp_path, monkeypatch):
    index = made(tmp_path, TEXTS)
    read, calls = state.read_manifest, []

    def slow(folder):
        manifest = read(folder)
        if not calls:  # another process compacts after the first read
            calls.append(folder)
            index.compact()
        return manifest

    monkeypatch.setattr(state, "read_manifest", slow)
    assert dict(found(TextIndex(index.folder), "one")) == TEXTS
    assert calls


def test_numbers_continue_after_the_largest_id(tmp_path):
    index = made(tmp_path, {"7": "seven", "x9": "nine", "9" * 5_000: "long", "٣": "three"})
    assert index.manifest.next_id == 8


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dim", "4"), ("dim", 0), ("dim", 2**40), ("dim", True), ("next_number", 1e308),
        ("next_id", []), ("name", "../other"), ("name", 5), ("name", "/other"), ("rows", -1),
        ("rows", None), ("deleted", 6), ("deletions", "../000002.deleted"), ("files", []),
        ("sha256", None), ("source", 3), ("source", "\ud800"), ("dtype", "int8"), ("recall", 0.0),
    ],
)  # fmt: skip
def test_wrong_values_in_the_manifest_are_refused(tmp_path, key, value):
    index = made(tmp_path, TEXTS)
    tree = json.loads((index.folder / FILE).read_text("utf-8"))
    del tree["sha256"]
    [entry] = tree["segments"]
    table = next(part for part in (entry, tree["model"], tree) if key in part)
    if key == "name":
        table = entry
    table[key] = value
    (index.folder / FILE).write_text(json.dumps(sealed(tree)), "utf-8")
    with pytest.raises(InputError, match=r"index\.json"):
        TextIndex(index.folder)


def test_a_changed_list_of_deleted_texts_is_refused(tmp_path):
    index = made(tmp_path, TEXTS)
    index.delete(["b"])
    [entry] = index.manifest.segments
    path = index.folder / entry.deletions
    for content in (b"\x02\0\0\0", b"\xff\0\0\0"):  # another text, and none
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"deleted.*SHA-256"):
            TextIndex(index.folder)


def damage(path, place, bits):
    content = bytearray(path.read_bytes())
    content[place] ^= bits
    path.write_bytes(content)


def test_compacting_does_not_hide_damage(tmp_path):
    index = made(tmp_path, TEXTS)
    [entry] = index.manifest.segments
    damage(index.folder / entry.name / "embeddings.bin", 3, 1)
    before = (index.folder / FILE).read_bytes()
    with pytest.raises(InputError, match=r"embeddings\.bin.*SHA-256"):
        index.compact()
    assert (index.folder / FILE).read_bytes() == before


def test_the_next_change_removes_what_a_killed_one_left(tmp_path):
    index = made(tmp_path, TEXTS)
    for name in (".index.json.lock", ".index.json.part", ".000002.deleted.part", ".000002.lock"):
        (index.folder / name).write_text("process 1")
    (index.folder / ".000002.part").mkdir()
    with pytest.raises(InputError, match="'a'"):
        index.add_encoded([encoded({"a": "again"})])
    assert {path.name for path in index.folder.iterdir()} == {FILE, "000001"}


KILLED = """
import os, shutil, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
import test_folder as t
folder, more = Path(sys.argv[1]), {"b": "two", "c": "three"}
t.create_index(folder, t.EMPTY, [t.encoded({"a": "one"})])
kills, ended = 0, False

def work(stop):
    seen = 0
    def hook(event, given):
        nonlocal seen
        writes = event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            seen += 1
            if seen == stop:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    t.TextIndex(folder).add_encoded([t.encoded(more)])
    os._exit(0)

for stop in range(1, 1_000, 2):
    shutil.copytree(folder, f"{folder}-before", dirs_exist_ok=True)
    child = os.fork()
    if not child:
        work(stop)
    ended = os.waitpid(child, 0)[1] == 0
    index = t.TextIndex(folder)
    index.check()
    assert dict(t.scan(index)) in ({"a": "one"}, {"a": "one"} | more), stop
    index.delete("a")  # removes what the kill left
    named = {"index.json", *(e.name for e in index.manifest.segments)}
    named |= {e.deletions for e in index.manifest.segments if e.deletions}
    assert {path.name for path in folder.iterdir()} == named, stop
    shutil.rmtree(folder)
    Path(f"{folder}-before").rename(folder)
    if ended:
        break
    kills += 1
print(kills, ended)
"""


@pytest.mark.slow
def test_an_addition_that_joins_segments_may_be_killed_at_any_operation(tmp_path):
    paths = [path for path in (*sys.path, str(Path(__file__).parent)) if path]
    command = [sys.executable, "-c", KILLED, str(tmp_path / "index"), *paths]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    kills, ended = (told.stdout or told.stderr).split()[:2]
    assert (ended, told.returncode) == ("True", 0), told.stderr
    assert int(kills) > 20


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
import test_folder as t
folder, index = Path(sys.argv[1]), None
for turn in range(30):
    if turn % 6 == 0:
        texts = {f"{turn}-{n}": f"text {turn} {n}" for n in range(1 + turn % 5)}
        t.create_index(folder, t.EMPTY, [t.encoded(texts)], overwrite=True)
        index = t.TextIndex(folder)
    elif turn % 6 == 3:
        index.compact()
    else:
        index.add_encoded([t.encoded({f"more {turn}": "more"})])
print("done")
"""


@pytest.mark.slow
def test_a_reader_sees_one_whole_state_while_another_process_writes(tmp_path):
    made(tmp_path, TEXTS)
    paths = [path for path in (*sys.path, str(Path(__file__).parent)) if path]
    command = [sys.executable, "-c", WRITER, str(tmp_path / "index"), *paths]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        opened = 0
        while writer.poll() is None:
            one = state.opened(tmp_path / "index")
            hidden = [None] * len(one.segments)
            found = search_segments(one.segments, vector("more")[None], 100, absent=hidden)
            [hits] = one.hits(found, 0)
            assert len(hits) == len({hit.id for hit in hits}) == len(one)
            assert all(hit.text for hit in hits if hit.id)
            opened += 1
        assert writer.stdout.read() == b"done\n"
    assert opened > 10


SEES = {
    "len": len,
    "in": lambda index: "new" in index,
    "get": lambda index: index.get("a"),
    "find": lambda index: index.find(["a", "new"]),
    "embeddings": lambda index: index.embeddings(["a"]).tolist(),
    "known": lambda index: index.known(["a", "new"]),
    "around": lambda index: index.around("a", 0),
    "nearest": lambda index: found(index, "one"),
    "matching": lambda index: matched(index, "newer"),
    "hybrid": lambda index: index.best("newer", vector("newer")[None]),
    "where": lambda index: index.nearest(vector("")[None], where={"author": "newer"}),
    "summary": lambda index: index.summary(),
    "encoded": lambda index: scan(index),
    "has_messages": lambda index: index.has_messages,
    "manifest": lambda index: index.manifest,
}


@pytest.mark.parametrize("call", SEES)
def test_each_call_sees_what_another_reader_changed(tmp_path, call):
    one = create_index(tmp_path / "index", EMPTY, [encoded({"a": ""})])
    other = TextIndex(tmp_path / "index")
    seen = SEES[call] if call != "where" else len  # no text has that author yet
    before = seen(other)
    one.add_encoded([encoded({"new": "newer", "a": "newest"})], update=True)
    expected = SEES[call](TextIndex(tmp_path / "index"))
    assert before != expected
    assert SEES[call](other) == expected


def test_an_index_that_another_model_replaced_is_refused(tmp_path):
    index = made(tmp_path, TEXTS)
    other = replace(EMPTY, model=IndexModel("other", "cd" * 32, None, None))
    create_index(tmp_path / "index", other, [encoded(TEXTS)], overwrite=True)
    for call in (index.reload, lambda: found(index, "one"), lambda: index.get("a")):
        with pytest.raises(InputError, match=r"another model, other; open it again"):
            call()
    create_index(tmp_path / "index", EMPTY, [encoded({"a": "one"})], overwrite=True)
    assert found(index, "one") == [("a", "one")]


@pytest.mark.slow
def test_an_index_that_grew_by_small_additions_has_few_segments(tmp_path):
    index, texts = made(tmp_path, {}), {}
    for number in range(70):
        more = {f"{number}": f"text {number % 7}"}
        index.add_encoded([encoded(more)])
        texts |= more
        counts = [entry.count for entry in index.manifest.segments]
        assert all(count > sum(counts[place + 1 :]) for place, count in enumerate(counts))
        if number % 10 == 9:
            gone = f"{number - 5}"
            index.delete(gone)
            del texts[gone]
    assert scan(index) == list(texts.items())
    assert found(index, "text 3") == scanned(texts, "text 3")
    index.check()
    whole = made(tmp_path, texts, "whole")
    for query in ("text 3", "text"):
        assert matched(index, query) == matched(whole, query)
    names = {path.name for path in index.folder.iterdir()}
    assert len(names) <= 1 + 2 * len(counts)


def test_the_same_additions_give_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        index = made(tmp_path, TEXTS, name)
        for number in range(9):
            index.add_encoded([encoded({f"{number}": f"text {number}"})])
    one, other = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "other")
    )
    assert one == other


@pytest.mark.parametrize("name", ["embeddings.bin", "texts.bin", "words.counts"])
def test_joining_does_not_hide_damage(tmp_path, name):
    index = made(tmp_path, {"a": "one"})
    damage(tmp_path / "index/000001" / name, 0, 1)
    before = (index.folder / FILE).read_bytes()
    with pytest.raises(InputError, match=rf"{name} .*SHA-256"):
        index.add_encoded([encoded({"b": "two"})])
    assert (index.folder / FILE).read_bytes() == before
    assert {path.name for path in index.folder.iterdir()} == {FILE, "000001"}


@pytest.mark.parametrize("search", [found, matched])
@pytest.mark.parametrize("name", sorted({*BY_MEANING, *BY_WORDS}))
def test_a_file_that_is_cut_under_a_reader_is_named(tmp_path, name, search):
    index = made(tmp_path, TEXTS)
    search(index, "one")
    path = tmp_path / "index/000001" / name
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    if name not in (BY_MEANING if search is found else BY_WORDS):
        search(index, "one")
        return
    with pytest.raises(InputError, match=name):
        search(index, "one")


@pytest.mark.parametrize("name", ["keys", "rows"])
def test_the_first_look_up_notices_changed_keys(tmp_path, name):
    made(tmp_path, TEXTS)
    damage(tmp_path / "index/000001" / name, 3, 4)
    index = TextIndex(tmp_path / "index")
    with pytest.raises(InputError, match=name):
        index.get("a")


def test_many_texts_are_in_several_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "SEGMENT_ROWS", 2)
    parts = [encoded({f"{part}{row}": f"text {part}{row}" for row in "ab"}) for part in "pqr"]
    unnamed = EncodedTexts([None, None], ["7", "nine"], np.array([vector("7"), vector("nine")]))
    index = create_index(
        tmp_path / "index", EMPTY, [*parts, encoded({"41": "x", "y": "y"}), unnamed]
    )
    assert [entry.rows for entry in index.manifest.segments] == [2, 2, 2, 2, 2]
    assert (index.get("42"), index.get("43")) == ("7", "nine")
    assert index.manifest.next_id == 44
    before = scan(index)
    index.delete("pa")
    index.compact()
    assert scan(index) == before[1:]
    assert [entry.rows for entry in index.manifest.segments] == [3, 2, 2, 2]


@pytest.mark.parametrize("update", [False, True])
def test_an_id_that_is_given_to_two_segments_leaves_the_index_as_it_was(
    tmp_path, monkeypatch, update
):
    index = made(tmp_path, TEXTS)
    files = sorted(path.name for path in index.folder.iterdir())
    monkeypatch.setattr(folder, "SEGMENT_ROWS", 1)
    with pytest.raises(InputError, match="two texts have the id 'n'"):
        index.add_encoded([encoded({"n": "new"}), encoded({"n": "other"})], update=update)
    assert sorted(path.name for path in index.folder.iterdir()) == files
    assert scan(TextIndex(index.folder)) == list(TEXTS.items())


def test_an_update_replaces_texts_by_those_of_several_segments(tmp_path, monkeypatch):
    index = made(tmp_path, TEXTS)
    monkeypatch.setattr(folder, "SEGMENT_ROWS", 1)
    index.add_encoded(
        [encoded({"a": "un"}), encoded({"c": "new"}), encoded({"d": "de"})], update=True
    )
    assert dict(scan(index)) == {**TEXTS, "a": "un", "c": "new", "d": "de"}


def scan(index):
    """All ids and texts, in their order."""
    return [pair for part in index.encoded() for pair in zip(part.ids, part.texts, strict=True)]
