"""What is forgotten is in no file, and the rest is as it was."""

import json

import numpy as np
import polars as pl
import pytest

from export_samples import write
from rejoinder.conversations.explore import explore, prepared_in, read_facts
from rejoinder.conversations.forget import find_personal, forget
from rejoinder.conversations.replies import read_kept
from rejoinder.conversations.suggest import Suggester
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import InputError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.indexing import Index
from rejoinder.index.segment import EncodedTexts

PEOPLE = ("ann", "bob", "cid", "dora", "Zoltanplant")
PLANTED = (b"zoltanplant", b"secretplant")
PLACES = ("router", "printer", "kettle", "garden gate", "bicycle")


def messages():
    """Questions in threads, each with a reply; every fifth author is the one who is forgotten."""
    said = []
    for number in range(60):
        root = f"{1_600_000_000 + 100 * number}.000000"
        for turn in range(4):
            author = (number + turn) % len(PEOPLE)
            secret = " secretplant" if PEOPLE[author] == "Zoltanplant" else ""
            place = PLACES[number % 7 % 5]
            text = (
                f"How do I repair the{secret} {place}?",
                f"Take the{secret} manual of the {place}, number {number}.",
                f"Where is the{secret} manual of the {place} then?",
                f"The{secret} {place} manual lies in the drawer {number}.",
            )[turn]
            time = f"{1_600_000_000 + 100 * number + turn}.000000"
            row = {"type": "message", "user": f"U{author}", "ts": time, "text": text}
            said.append({**row, "thread_ts": root})
    said.append({"type": "message", "user": "U0", "ts": "1600009000.000000",
                 "text": "Write to ann@example.org or call +44 20 7946 0958"})  # fmt: skip
    return said


@pytest.fixture
def export(tmp_path):
    users = [{"id": f"U{at}", "name": name} for at, name in enumerate(PEOPLE)]
    files = {
        "users.json": users,
        "channels.json": [{"id": "C1", "name": "help"}],
        "help/2020-09-13.json": messages(),
    }
    return write(files, tmp_path / "team")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids_of(index):
    return [name for part in index.encoded() for name in part.ids]


def planted_in(folder):
    found = [data.lower() for data in contents(folder).values()]
    if (folder / "manifest.json").is_file():  # Parquet is compressed
        pairs = open_pairs(folder)
        frames = [pl.read_parquet(folder / shard.file) for shard in pairs.manifest.shards]
        found += [json.dumps(frame.to_dicts()).lower().encode() for frame in frames]
    return {word for word in PLANTED if any(word in data for data in found)}


def test_no_file_of_an_explored_folder_has_what_was_removed(export):
    ready = explore(export, model="rejoinder-small")
    old = TextIndex(ready.index)
    everything = {hit.id: hit for hit in old.known(ids_of(old))}
    theirs = {name for name, one in everything.items() if one.about["author"] == "Zoltanplant"}
    assert planted_in(ready.folder) == {*PLANTED}
    before = contents(ready.folder)
    told = forget([ready.folder], author="zoltanplant", dry_run=True)
    assert contents(ready.folder) == before
    vectors = dict(zip(everything, old.embeddings([*everything]), strict=True))
    assert forget([ready.folder], author="ZOLTANPLANT") == told
    assert planted_in(ready.folder) == set()
    assert f"{len(everything) - len(theirs)} messages" in read_facts(ready.folder).read
    index = TextIndex(ready.index)
    assert {*ids_of(index)} == everything.keys() - theirs
    for one in index.known(ids_of(index)):
        known = dict(everything[one.id].about)
        if known.get("answers") in theirs:
            del known["answers"]
        known.pop("thread", None)
        assert {key: value for key, value in one.about.items() if key != "thread"} == known
    assert np.array_equal(
        index.embeddings(ids_of(index)), np.stack([vectors[name] for name in ids_of(index)])
    )
    links = sum(
        one.about.get("answers") in theirs
        for name, one in everything.items() if name not in theirs
    )  # fmt: skip
    assert (told.removed["messages"], told.removed["links"]) == (len(theirs), links)
    assert min(told.removed[kind] for kind in ("replies", "questions")) > 0
    assert {*read_facts(ready.folder).ids} == {*ids_of(index)}
    assert read_kept(ready.index) is not None
    assert Suggester(ready.index, 1)("How do I repair the kettle?", 3, None).suggestions
    assert not explore(export, model="rejoinder-small").fresh
    with pytest.raises(InputError, match="did you mean 'dora'"):
        forget([ready.folder], author="dorra")


def test_pairs_lose_the_messages_of_an_index_and_turns_before_others(export, tmp_path):
    pairs, folder, day = tmp_path / "pairs", tmp_path / "index", export / "help/2020-09-13.json"
    said = json.loads(day.read_text())
    for row in said:
        row.pop("thread_ts", None)
    day.write_text(json.dumps(said))
    extract(str(export), pairs, pair="adjacent", within="50s", context=3, split=(80, 10, 10))
    Index.create(folder, export, "rejoinder-small")
    with pytest.raises(InputError, match="index"):
        forget([pairs], author="Zoltanplant")
    assert planted_in(pairs) == {b"secretplant"}
    told = forget([pairs, folder], author="Zoltanplant", dry_run=True)
    assert forget([folder, pairs], author="Zoltanplant") == told
    assert planted_in(pairs) | planted_in(folder) == set()
    made = open_pairs(pairs)
    count = sum(made.count(split) for split in ("train", "dev", "test"))
    assert count == made.manifest.counts.pairs == 180 - told.removed["pairs"]
    assert told.removed["turns"] > 0
    made.frame("train")  # compares the shards with their hashes
    TextIndex(folder).check()


def test_pairs_lose_what_matches(export, tmp_path):
    pairs = tmp_path / "pairs"
    extract(str(export), pairs, min_authors=5)
    words = open_pairs(pairs).words
    removed = forget([pairs], match="(?i)KETTLE").removed
    made = open_pairs(pairs)
    assert removed["pairs"] == 180 - made.manifest.counts.pairs > 0
    assert "kettle" in words
    assert "kettle" not in made.words
    with pytest.raises(InputError, match="remove the folder"):
        forget([pairs], match="manual|repair")


ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 2)


@pytest.fixture
def index(tmp_path):
    """Mails: the first gives the thread its id and its subject."""
    known = {
        "<1@zoltanplant>": {"author": "Z.", "title": "secretplant", "thread": "<1@zoltanplant>"},
        "2": {"author": "Ann", "title": "secretplant", "thread": "<1@zoltanplant>",
              "answers": "<1@zoltanplant>", "confidence": 0.5},
        "3": {"author": "Bob", "title": "Lunch", "thread": "3"},
        "4": {"author": "Z.", "title": "Lunch", "thread": "3", "answers": "3"},
        "5": {"author": "Bob", "title": "Lunch", "thread": "3", "answers": "4"},
        "6": {"author": "Cid", "title": "z.?"},
        "7": {"author": "Dan", "answers": "<8@absent>"},
    }  # fmt: skip
    rows = np.tile(np.array([1, 0], np.float32), (len(known), 1))
    texts = [f"text {name}" for name in known]
    return create_index(
        tmp_path / "index", ABOUT, [EncodedTexts([*known], texts, rows, [*known.values()])]
    )


def test_an_index_loses_ids_threads_and_subjects_of_what_was_removed(index):
    index.delete("7")  # its text is still in a file
    told = forget([index.folder], author="z.")
    assert told.removed == {"messages": 2, "links": 2, "titles": 1}
    assert told.mentions == 1
    assert planted_in(index.folder) == set()
    assert b"text 7" not in b"".join(contents(index.folder).values())
    two, five, six = index.known(["2", "5", "6"])
    assert two.about.keys() == {"author", "thread"}
    assert five.about == {"author": "Bob", "title": "Lunch", "thread": "3"}
    assert six.about["title"] == "z.?"


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("plant>$", {"3", "4", "5", "6", "7"}),  # also in what it answers, by the thread
        ("^Lunch$", {"<1@zoltanplant>", "2", "6", "7"}),
        ("(?i)ANN|cid", {"<1@zoltanplant>", "3", "4", "5", "7"}),
        ("text [1-7]$", {"<1@zoltanplant>"}),
        ("nothing", {"<1@zoltanplant>", "2", "3", "4", "5", "6", "7"}),
    ],
)
def test_a_pattern_matches_all_that_is_known_of_a_message(index, pattern, left):
    forget([index.folder], match=pattern)
    assert {*ids_of(index)} == left


def test_an_id_that_matches_is_no_longer_answered(index):
    assert forget([index.folder], match="absent").removed == {"links": 1}
    assert index.known(["7"])[0].about == {"author": "Dan"}


def test_an_index_explored_where_it_is_is_explored_again(export, tmp_path):
    Index.create(tmp_path / "index", export, "rejoinder-small")
    made = explore(tmp_path / "index")
    assert planted_in(made.folder) == {*PLANTED}
    told = forget([tmp_path / "index"], author="Zoltanplant")
    assert told.removed["questions"] > 0
    assert planted_in(made.folder) | planted_in(tmp_path / "index") == set()
    assert prepared_in(tmp_path / "index") == prepared_in(made.folder)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "author"),
        ({"author": "a", "match": "b"}, "author"),
        ({"match": "("}, "unclosed group"),
        ({"match": r"(.)\1"}, "not supported"),
        ({"match": "a{9999999}"}, "size limit"),
        ({"match": "x*"}, "every text"),
        ({"match": "text"}, "remove the folder"),
        ({"author": "Nobody"}, "Nobody"),
    ],
)
def test_what_can_not_be_forgotten_is_said(index, given, said):
    before = contents(index.folder)
    with pytest.raises(InputError, match=said):
        forget([index.folder], **given)
    assert contents(index.folder) == before


def test_other_folders_are_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="neither an index"):
            forget([folder], match="a")


def test_no_pattern_takes_more_than_its_share(tmp_path):
    rows = np.array([[1, 0]], np.float32)
    texts = [EncodedTexts(["1", "2"], ["a" * 200_000 + "b", "c"], rows[[0, 0]])]
    index = create_index(tmp_path / "index", ABOUT, texts)
    assert forget([index.folder], match="(a|a)*(a+)+$").removed == {}


def test_personal_data_is_found_in_whatever_has_texts(export, tmp_path):
    extract(str(export), tmp_path / "pairs")
    Index.create(tmp_path / "index", export, "rejoinder-small")
    ready = explore(export, model="rejoinder-small")
    expected = [("email", "ann@example.org"), ("phone", "+44 20 7946 0958")]
    for path in (export, tmp_path / "index", ready.folder, ready.index):
        found = [*find_personal(path)]
        assert [(one.kind, one.found) for one in found] == expected, path
        assert {one.id for one in found} == {"help/1600009000.000000"}
    assert [*find_personal(tmp_path / "pairs")] == []
    lines = tmp_path / "lines.txt"
    lines.write_text("Nothing.\nMail bob@example.org\n")
    assert [*find_personal(lines)] == [("email", "2", "bob@example.org")]


@pytest.mark.slow
def test_a_newer_export_brings_back_what_it_still_has(export, tmp_path):
    ready = explore(export, model="rejoinder-small")
    removed = forget([ready.folder], author="Zoltanplant").removed["messages"]
    new = {"type": "message", "user": "U1", "ts": "1600009001.000000", "text": "One more."}
    (export / "help/2020-09-14.json").write_text(json.dumps([new]))
    again = explore(export, model="rejoinder-small")
    assert (again.changes.new, again.changes.changed) == (removed + 1, 0)
    whole = explore(export, out=tmp_path / "whole", model="rejoinder-small")
    assert {*ids_of(TextIndex(again.index))} == {*ids_of(TextIndex(whole.index))}
