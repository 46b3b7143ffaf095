"""The words of an index: their files, and which of them a misspelt word of a query stands for."""

import numpy as np
import pytest

from rejoinder import Index, SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.index import words as word_files
from rejoinder.index.folder import TextIndex, create_index
from small_indexes import ABOUT, made, part, random_texts


def test_words_that_are_put_in_order_in_stretches_give_the_same_files(tmp_path, monkeypatch):
    parts = [part(random_texts(200, seed)) for seed in range(3)]
    whole = create_index(tmp_path / "whole", ABOUT, parts)
    monkeypatch.setattr(word_files, "_PAIRS", 50)
    stretches = create_index(tmp_path / "stretches", ABOUT, parts)
    assert stretches.manifest == whole.manifest


def test_a_segment_written_in_parts_is_the_same(tmp_path):
    texts = random_texts(500)
    names = list(texts)
    whole = made(tmp_path / "whole", texts)
    thirds = [{name: texts[name] for name in names[n : n + 77]} for n in range(0, 500, 77)]
    parts = made(tmp_path / "parts", {}, *thirds, {})
    assert parts.manifest.segments == whole.manifest.segments  # hashes of all files


@pytest.mark.parametrize("name", word_files.FILES)
def test_a_changed_byte_is_noticed_by_the_first_search(tmp_path, name):
    index = made(tmp_path, random_texts(50))
    path = index.folder / "000001" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    opened = TextIndex(index.folder)
    opened.nearest(np.array([[1, 0]], np.float32))
    with pytest.raises(InputError, match=rf"{name} .*SHA-256"):
        opened.matching("w1")


def test_files_that_contradict_each_other_are_refused(tmp_path, monkeypatch):
    index = made(tmp_path, {"a": "one two", "b": "two"})
    monkeypatch.setattr(word_files, "check_file", lambda *_arguments, **_named: None)
    for name, values in (("rows", [0, 0, 2]), ("offsets", [0, 9, 3]), ("offsets", [1, 1, 3])):
        path = index.folder / "000001" / f"words.{name}"
        whole = path.read_bytes()
        np.array(values, "<u4" if name == "rows" else "<i8").tofile(path)
        with pytest.raises(InputError, match=rf"words\.{name} does not fit"):
            TextIndex(index.folder).matching("one")
        path.write_bytes(whole)
    [entry] = index.manifest.segments
    files = entry.files | {"words.counts": {"bytes": 2, "sha256": ""}}
    with pytest.raises(InputError, match=r"words\.counts"):
        word_files.Words(index.folder / "000001", files, entry.rows)


TEXTS = ["How old are you?", "What is your age?", "I lost my XK-47 key.", "Where do you live?"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("modes") / "index", TEXTS, "rejoinder-small")


def test_an_index_of_the_first_format_is_built_again(tmp_path):
    index = made(tmp_path, {"a": "one"})
    path = index.folder / "index.json"
    path.write_text(path.read_text().replace('"format_version": 3', '"format_version": 1'))
    with pytest.raises(InputError, match=r"version 1.*Build the index again"):
        TextIndex(index.folder)


NAMED = [
    "Deploy it to Kubernetes and watch Grafana.",
    "The Kubernetes cluster of RPostgreSQL is down.",
    "dbGetQuery returns a connection",
    "How do I connect to the database?",
    *(f"connect to server {number}" for number in range(30)),
    "conect again",
    "A soda and a pie.",
]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("own") / "index", NAMED, "rejoinder-small")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("is Kuberntes up", {"kuberntes": "kubernetes"}),
        ("grafna dashboards", {"grafna": "grafana"}),
        ("dbGetQurey fails", {"dbgetqurey": "dbgetquery"}),
        ("the RPosgreSQL conection", {"rposgresql": "rpostgresql", "conection": "connection"}),
        ("how to conect", {"conect": "connect"}),  # the index has both
        ("is Grafana up", {}),
        ("where is Skoda made", {}),  # it has soda, and English has Skoda
        ("pasword", {"pasword": "password"}),  # as the model reads it
        ("", {}),
    ],
)
def test_words_are_read_as_those_of_the_index(named, query, expected):
    assert named.read_as(query) == [expected]


def test_a_word_that_is_its_own_sequence_of_letters_is_read_as_one_of_the_index():
    features = SentenceEncoder("rejoinder-base").features

    def count(words):
        return np.array([10 * (word == "arcade") for word in words])

    query = "mame runs mrcade games"  # the model reads it both ways
    assert word_files.own_words([query], count, features) == [{"mrcade": "arcade"}]


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_a_misspelt_name_finds_what_the_right_one_does(named, mode):
    wrong, right = named.search(["Kuberntes is down", "Kubernetes is down"], 2, mode=mode)
    assert [(hit.id, hit.score) for hit in wrong] == [(hit.id, hit.score) for hit in right]
    assert wrong[0].id == "2"


def test_the_index_knows_words_that_are_added(tmp_path):
    grown = Index.create(tmp_path / "index", ["How are you?"], "rejoinder-small")
    assert grown.read_as("zabbbix alerts") == [{}]
    grown.add(["Zabbix sends alerts."])
    assert grown.read_as("zabbbix alerts") == [{"zabbbix": "zabbix"}]
