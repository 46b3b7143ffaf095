"""One file finds what the index finds, and tells nothing that was left out."""

import base64
import gzip
import io
import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
import zstandard

from awkward_texts import awkward_texts
from offline_page import answers, needs_node
from rejoinder.conversations import one_file
from rejoinder.conversations.explore import Watch, explore
from rejoinder.conversations.one_file import Choice, write_one_file
from rejoinder.errors import InputError
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model

[MULTI] = (Path(__file__).parents[2] / "models/rejoinder-multi").glob("src/*/rejoinder-multi")
PEOPLE = "ann", "bob", "cyd_", "Dee Grey", "will"
SAID = (
    "How do I install the printer?", "Which package has the driver?", "try apt-get install cups",
    "Thanks, that works now", "The night train to Rome was late again.", "Is the train cheaper?",
    "I bought two mp3 players, ann", "will: did you see @bob's mail?", "no, will you ask Dee Grey?",
    "My keyboards don't work since the update", "Look at <b>this</b></script><script>alert(1)",
    "I do n't know, it 's the recieve buffer", "Ça va? Où est la gare, s'il vous plaît",
)  # fmt: skip
QUERIES = (
    "how to install a printer", "train to rome", "night trains", "what did ann buy", "mp3 player",
    "who asked in march 2024", "last february", "était en février", "on christmas",
    "on 2024-02-03", "keyboard", "do not work", "the", "kubernetes", "recieve", "gare",
    "Where's bob?", "what will will say", "update", "thanks", "pirnter drivr", "Keybord",
    "apt-gett", "Instal TRAIM", "bbo", "pakage manger", "KEYBORDS",
)  # fmt: skip


def chats(folder, channels=("help", "travel"), people=PEOPLE, count=60):
    """Logs of messages that are drawn, a file per channel and day."""
    random = Random(0)
    folder.mkdir()
    for channel in channels:
        for month in ("01", "02", "03"):
            lines = [
                f"[{10 + at // 6}:{at % 6}{at % 10}] <{random.choice(people).split()[0]}> "
                f"{random.choice(SAID)}{random.choice(['', '', ' ' + random.choice(SAID)])}\n"
                for at in range(count // 6)
            ]
            (folder / f"{channel}_2024-{month}-03.log").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    return explore(chats(tmp_path_factory.mktemp("chats") / "logs"), model="rejoinder-small")


@pytest.fixture(scope="module")
def file(explored, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "archive.html"
    write_one_file(explored, path, "logs", Choice(), Watch())
    return path


def columns(file):
    """The bytes of the columns of a file, by their names."""
    found = re.findall(r'data-column="(\w+)" data-kind="\w+">([^<]*)<', file.read_text("utf-8"))
    return {name: gzip.decompress(base64.b64decode(content)) for name, content in found}


@needs_node
@pytest.mark.parametrize("mode", ["hybrid", "words", "semantic"])
def test_it_finds_what_the_index_finds_in_the_same_order(explored, file, mode):
    index = Index(explored.index)
    found, read = answers(
        file, ["search", {"queries": QUERIES, "top_k": 10, "mode": mode}],
        ["read", {"queries": QUERIES}],
    )  # fmt: skip
    assert read == index.read_as(QUERIES)
    for query, hits, expected in zip(QUERIES, found, index.search(QUERIES, mode=mode), strict=True):
        assert len(hits) == len(expected), query
        for hit, other in zip(hits, expected, strict=True):
            assert hit["score"] == pytest.approx(other.score, abs=1e-5), query
            # the same words in another order, whose sums are rounded
            is_tie = sum(abs(one["score"] - hit["score"]) < 1e-6 for one in hits) > 1
            if not is_tie:
                assert (hit["id"], hit["about"]) == (other.id, other.about), query


@needs_node
def test_conditions_narrow_a_search(explored, file):
    where = {"source": "help", "author": ["ann", "Bob"], "since": "2024-02-01"}
    asked = {"queries": ["install"], "top_k": 50, "mode": "hybrid", "context": 2}
    phrase = {**asked, "queries": ['"night train" -again'], "typed": True}
    wrong = {**asked, "where": {"source": "hepl"}}
    [hits], [phrases], refused, around = answers(
        file, ["search", {**asked, "where": where}], ["search", phrase], ["search", wrong],
        ["around", {"id": "none", "context": 1}],
    )  # fmt: skip
    [expected] = Index(explored.index).search(
        ["install"], 50, mode="hybrid", where=where, context=2
    )
    assert [hit["id"] for hit in hits] == [hit.id for hit in expected]
    assert [[one["id"] for one in hit["before"]] for hit in hits] == [
        [one.id for one in hit.before] for hit in expected
    ]
    assert "hepl" in refused["error"]
    assert "none" in around["error"]
    assert phrases == []  # the train is late "again" in all of them


@needs_node
def test_words_of_a_query_and_of_hits_are_explained(file):
    query = "my keybord last March"
    [read], [[hit]], shares, why = answers(
        file, ["read", {"queries": [query]}],
        ["search", {"queries": ["keyboards"], "top_k": 1, "mode": "hybrid", "explain": True}],
        ["unknown", {"inputs": ["xyzzyx plughq", "the train"]}],
        ["explain", {"first": "the keyboards", "second": "a keyboard"}],
    )  # fmt: skip
    assert read == {"keybord": "keyboard", "last march": "March 2024"}
    start, stop, _ = max(hit["why"]["words"], key=lambda word: word[2])
    assert hit["text"][start:stop] == "keyboards"
    assert shares == [1, 0]
    assert why["cosine"] == pytest.approx(
        float(np.dot(*SentenceEncoder("rejoinder-small").encode(["the keyboards", "a keyboard"]))),
        abs=1e-6,
    )


@needs_node
def test_a_message_like_one_and_its_conversation(explored, file):
    index = Index(explored.index)
    [[hit]] = index.search(["night train"], 1)
    similar, around = answers(
        file, ["similar", {"id": hit.id, "top_k": 5}], ["around", {"id": hit.id, "context": 3}]
    )
    nearest = index.nearest(index.embeddings([hit.id]), 6)[0]
    assert {one["text"] for one in similar} <= {one.text for one in nearest}
    expected = index.around(hit.id, 3)
    assert [one["text"] for one in around["before"]] == [one.text for one in expected.before]
    assert hit.id in [one["id"] for one in around["exchange"]]


def vectors(texts, tmp_path, model, monkeypatch):
    """The embeddings of texts, by the page and by the library."""
    monkeypatch.setattr(one_file, "_FREQUENT", 10**6)
    lines = tmp_path / "lines.txt"
    lines.write_text("How are you?\n")
    path = tmp_path / "all.html"
    write_one_file(explore(lines, model=model), path, "lines", Choice(), Watch())
    found = answers(path, *(["encode", text] for text in texts))
    made = [np.frombuffer(base64.b64decode(one), "<f4") for one in found]
    return np.array(made), SentenceEncoder(model).encode(texts)


@needs_node
@pytest.mark.filterwarnings("ignore::rejoinder.errors.ForeignTextWarning")
@pytest.mark.parametrize("model", ["rejoinder-small", pytest.param(MULTI, marks=pytest.mark.slow)])
def test_the_page_encodes_as_the_library_does(tmp_path, monkeypatch, model):
    texts = [
        *SAID,
        *QUERIES,
        *awkward_texts(300),
        "Teh pasword, 3.x foo_bar()",
    ]
    made, expected = vectors(texts, tmp_path, model, monkeypatch)
    np.testing.assert_allclose(made, expected, atol=1e-5)


@needs_node
@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::rejoinder.errors.ForeignTextWarning")
@pytest.mark.parametrize("model", ["rejoinder-base", MULTI])
def test_ten_thousand_texts_in_seven_languages_are_encoded_alike(
    shared_data, tmp_path, monkeypatch, model
):
    languages: dict[str, list[str]] = {"en": []}
    for path in sorted((shared_data / "parallel").rglob("[!h]*.zst")):
        with path.open("rb") as file:
            lines = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file)
            for row in map(json.loads, io.TextIOWrapper(lines, "utf-8")):
                languages["en"].append(row["sentence1"])
                languages.setdefault(row["lang"][-2:], []).append(row["sentence2"])
    assert len(languages) == 7
    texts = [one for some in languages.values() for one in Random(0).sample(some, 1_429)]
    made, expected = vectors(texts, tmp_path, model, monkeypatch)
    np.testing.assert_allclose(made, expected, atol=1e-6)


def test_texts_can_not_leave_their_columns(file):
    page = file.read_text("utf-8")
    assert "alert(1)" not in page
    assert b"alert(1)" in columns(file)["texts"]
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"""(?:src|href)=["'](?!data:|#|openapi)""", page.partition("<script>")[0])


def test_people_have_pseudonyms_everywhere(explored, tmp_path):
    path = tmp_path / "archive.html"
    written = write_one_file(explored, path, "of ann", Choice(pseudonyms=True), Watch())
    assert written == one_file.Written(len(Index(explored.index)), 0, pseudonyms=True)
    everything = b"\n".join(
        columns(path)[name] for name in ("texts", "facts", "asked", "topics", "author_names", "ids")
    )
    assert not re.search(rb"(?i)\b(ann|bob|cyd_)\b", everything)
    names = json.loads(columns(path)["author_names"])
    assert sorted(names[1:]) == [f"Person {number}" for number in range(1, 6)]
    assert "ann" not in path.read_text("utf-8").partition("</title>")[0].split()


def test_only_some_channels_are_written(explored, tmp_path):
    path = tmp_path / "archive.html"
    write_one_file(explored, path, "logs", Choice(only=["Help"]), Watch())
    assert json.loads(columns(path)["source_names"]) == ["", "help"]
    with pytest.raises(InputError, match=r"travle.*travel"):
        write_one_file(explored, path, "logs", Choice(only=["travle"]), Watch())


@pytest.mark.slow
def test_chats_of_two_are_private(tmp_path):
    folder = chats(tmp_path / "logs")
    chats(tmp_path / "private", ["private"], ["ann", "bob"])
    for log in (tmp_path / "private").iterdir():
        log.rename(folder / log.name)
    ready, path = explore(folder, model="rejoinder-small"), tmp_path / "archive.html"
    for choice, private, pseudonyms in (
        (Choice(), 30, True),
        (Choice(pseudonyms=False), 30, False),
        (Choice(without_private=True), 0, False),
    ):
        written = write_one_file(ready, path, "logs", choice, Watch())
        assert (written.private, written.pseudonyms) == (private, pseudonyms)
    assert json.loads(columns(path)["source_names"]) == ["", "help", "travel"]


def test_a_model_that_the_page_can_not_compute_is_refused(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("How are you?\n")
    write_model(tmp_path / "model", bilstm_model())
    ready = explore(lines, model=tmp_path / "model")
    with pytest.raises(InputError, match="rejoinder-base"):
        write_one_file(ready, tmp_path / "archive.html", "lines", Choice(), Watch())
    with pytest.raises(InputError):
        write_one_file(ready, Path(ready.index), "lines", Choice(), Watch())
