"""The readers of AskUbuntu, of classed pairs, and of intents."""

import gzip
import json

import pytest

from rejoinder.datasets.labelled import read_intents, read_pairs
from rejoinder.datasets.semeval import read_askubuntu
from rejoinder.errors import DataMissingError, InputError


@pytest.fixture
def put(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path

    return write


TWEETS = "twitter-url/Twitter_URL_Corpus_test.txt"


def test_tweets_that_divide_people_are_left_out(put):
    rows = [f"a\tb{n}\t({n}, 6)\thttps://t.co/x" for n in (0, 2, 3, 4)]
    pairs = read_pairs(put(TWEETS, "\n".join(rows)), "twitter-url").splits["test"]
    assert (pairs.second, pairs.labels.tolist()) == (["b0", "b2", "b4"], [0, 0, 1])
    with pytest.raises(InputError, match=r"line 1: found '5'; .*\(4, 6\)"):
        read_pairs(put(TWEETS, "a\tb\t5\tx"), "twitter-url")
    with pytest.raises(InputError, match="no pairs of both classes"):
        read_pairs(put(TWEETS, rows[0]), "twitter-url")


def test_pairs_of_mteb_are_lines_or_lists(put):
    rows = [{"sentence1": "a", "sentence2": f"b{label}", "label": label} for label in (0, 1)]
    lines = "\n".join(map(json.dumps, rows))
    lists = json.dumps({"sent1": ["a", "a"], "sent2": ["b0", "b1"], "labels": [0, 1]})
    for name, content in (("sprint/test.jsonl.gz", lines), ("sprint/test.jsonl", lists)):
        pairs = read_pairs(put(name, content), "sprint").splits["test"]
        assert (pairs.second, pairs.labels.tolist()) == (["b0", "b1"], [0, 1])
    for wrong in ("{}", "[", '{"sent1": ["a"], "sent2": [], "labels": [1]}'):
        with pytest.raises(InputError, match="line 1: expected sentence1"):
            read_pairs(put("sprint/test.jsonl", wrong), "sprint")


def test_only_test_is_read_of_lines_with_splits(put):
    rows = [{"sentence1": split, "sentence2": "b", "label": label, "split": split}
            for split in ("train", "test") for label in (0, 1)]  # fmt: skip
    lines = "\n".join(map(json.dumps, rows))
    pairs = read_pairs(put("paraphrases/twitter_url_labelled.jsonl", lines), "twitter-url").splits[
        "test"
    ]
    assert pairs.first == ["test", "test"]


def test_intents_of_both_sets(put):
    put("banking77/train.csv", 'text,category\n"one, two",b\nthree,a\n')
    data = read_intents(put("banking77/test.csv", "text,category\nfour,a\n"), "banking77")
    assert data.splits["train"].first == ["one, two", "three"]
    assert [part.labels.tolist() for part in data.splits.values()] == [[1, 0], [0]]
    tree = {
        "train": [["x", "i"]],
        "val": [["y", "i"]],
        "test": [["z", "i"]],
        "oos_test": [["?", "oos"]],
    }
    data = read_intents(put("clinc150/data_full.json", json.dumps(tree)), "clinc150")
    assert {split: part.first for split, part in data.splits.items()} == {
        "train": ["x"], "val": ["y"], "test": ["z"]
    }  # fmt: skip
    with pytest.raises(InputError, match=r"train lacks.*c"):
        read_intents(put("banking77/test.csv", "text,category\nfour,c\n"), "banking77")
    with pytest.raises(InputError, match="line 2: expected two fields"):
        read_intents(put("banking77/test.csv", "text,category\nfour,c,d\n"), "banking77")
    for wrong in ("[]", "{}", "x"):
        with pytest.raises(InputError, match="not the file of CLINC150"):
            read_intents(put("clinc150/data_full.json", wrong), "clinc150")


def test_askubuntu_without_questions_that_nothing_is_similar_to(put):
    put(
        "askubuntu/text_tokenized.txt.gz",
        "1\tone\tbody of one\n2\ttwo\t\n3\tthree\tx\n9\tnine\ty\n",
    )
    data = read_askubuntu(put("askubuntu/dev.txt", "1\t3\t2 3\t5.5 4.1\n9\t\t1 2\t3 2\n"), "dev")
    [query] = data.queries
    assert (query.original.subject, query.original.body) == ("one", "body of one")
    assert [question.subject for question in query.related] == ["two", "three"]
    assert query.relevant.tolist() == [False, True]
    with pytest.raises(InputError, match=r"dev.txt line 1: .* lacks the question '7'"):
        read_askubuntu(put("askubuntu/dev.txt", "1\t7\t7\t5.5\n"), "dev")
    with pytest.raises(DataMissingError, match=r"test\.txt.*data list askubuntu"):
        read_askubuntu(put("askubuntu/dev.txt", ""), "test")


@pytest.mark.parametrize(("read", "name"), [(read_pairs, "sprint"), (read_intents, "clinc150")])
def test_what_is_missing_says_where_it_is(tmp_path, read, name):
    with pytest.raises(DataMissingError, match=rf"`rejoinder data list {name}`"):
        read(tmp_path, name)
