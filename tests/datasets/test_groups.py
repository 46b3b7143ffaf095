"""Groups of sentences that say one thing."""

import json

import pytest

from rejoinder.datasets.groups import read_groups
from rejoinder.errors import InputError


def written(path, lines):
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", "utf-8")
    return path


def test_groups_of_captions(tmp_path):
    lines = [
        {"group": "1.jpg", "sentences": ["a dog", " a cat ", ""]},
        {"group": "2.jpg", "sentences": ["alone"]},
        {"group": "3.jpg", "sentences": []},
        {"group": "4.jpg", "sentences": ["b", "b", "[c]"]},
    ]
    groups = read_groups(written(tmp_path / "a.jsonl", lines))
    assert groups.sentences == ["a dog", "a cat", "b", "b", "[c]"]
    assert groups.offsets.tolist() == [0, 2, 5]
    assert (len(groups), groups.dropped) == (2, 2)
    assert groups.negatives == []


@pytest.mark.parametrize(("yes", "no"), [(1, 0), ("1", "0"), (True, False)])
def test_labelled_pairs(tmp_path, yes, no):
    lines = [
        {"sentence1": "a", "sentence2": "b", "label": no},
        {"sentence1": "c", "sentence2": "d", "label": yes, "prob": 0.5},
        {"sentence1": "e", "sentence2": " ", "label": yes},
        {"sentence1": "", "sentence2": "f", "label": no},
    ]
    groups = read_groups(written(tmp_path / "a.jsonl", lines))
    assert groups.sentences == ["c", "d"]
    assert groups.negatives == [("a", "b")]
    assert (len(groups), groups.dropped) == (1, 2)


def test_pairs_without_labels_are_groups(tmp_path):
    lines = [{"sentence1": "a", "sentence2": "b", "prob": 1.5}] * 2
    assert read_groups(written(tmp_path / "a.jsonl", lines)).offsets.tolist() == [0, 2, 4]


def test_the_texts_of_named_fields_are_a_group(tmp_path):
    lines = [
        {"members": ["big", "large"], "definition": ["above average in size"]},
        {"members": ["able"], "definition": "having the means"},
        {"members": ["unable"], "definition": None},
        {"example": ["unable to come"]},
    ]
    path = written(tmp_path / "a.jsonl", lines)
    groups = read_groups(path, ("members", "definition"))
    assert groups.sentences == ["big", "large", "above average in size", "able", "having the means"]
    assert (groups.offsets.tolist(), groups.dropped) == ([0, 3, 5], 2)
    with pytest.raises(InputError, match=r"line 1: 'members' .*list of strings"):
        read_groups(written(tmp_path / "b.jsonl", [{"members": [1]}]), ("members",))


@pytest.mark.parametrize("label", [1, True, "1"])
def test_rows_are_chosen_by_the_values_of_fields(tmp_path, label):
    lines = [
        {**PAIR, "label": label, "split": "train"},
        {"sentence1": "c", "sentence2": "d", "label": 0, "split": "train"},
        {"sentence1": "e", "sentence2": "f", "label": label, "split": "test"},
    ]
    path = written(tmp_path / "a.jsonl", lines)
    train = read_groups(path, where={"split": "train"})
    assert (train.sentences, train.negatives) == (["a", "b"], [("c", "d")])
    with pytest.raises(InputError, match=r"split = dev.*test, train"):
        read_groups(path, where={"split": "dev"})
    with pytest.raises(InputError, match="line 1: no 'genre'"):
        read_groups(path, where={"genre": "news"})
    groups = written(tmp_path / "b.jsonl", [{"sentences": ["a", "b"], "n": n} for n in (1, 2)])
    assert len(read_groups(groups, where={"n": "2"})) == 1


def test_lists_of_pairs_of_words(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("big large\nhot dog\tsausage in a roll\n\n", "utf-8")
    assert read_groups(path).sentences == ["big", "large", "hot dog", "sausage in a roll"]
    path.write_text("big large\nbig\n", "utf-8")
    with pytest.raises(InputError, match=r"line 2: .*1 .*two"):
        read_groups(path)
    with pytest.raises(InputError, match="has no fields"):
        read_groups(path, where={"split": "train"})


PAIR = {"sentence1": "a", "sentence2": "b"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "has no rows"),
        ([{"text": "a"}], "has the fields 'text'; expected 'sentences', or 'sentence1' and"),
        ([{"sentences": "a b"}], "line 1: 'sentences' is .*; a list of strings is needed"),
        ([{"sentences": ["a", "b"]}, {"sentences": ["a", 1]}], "line 2: 'sentences' is"),
        ([{"sentences": ["a", "b"]}, {"sentences": ["a", None]}], "line 2: 'sentences' is"),
        ([{"sentences": ["a", "b"]}, {}], "line 2: no 'sentences'"),
        ([{"sentences": ["a"]}], "no group of two or more sentences in 1 rows"),
        ([{**PAIR, "label": 0}], "no group of two or more sentences in 1 rows"),
        ([{**PAIR, "label": 1}, {**PAIR, "label": 2}], "line 2: .*'2'; expected 1 .* or 0"),
        ([{**PAIR, "label": 1}, PAIR], "line 2: no 'label'"),
        ([{**PAIR, "label": "entailment"}], "'entailment'; expected 1"),
    ],
)
def test_bad_files_are_one_clear_sentence(tmp_path, lines, said):
    with pytest.raises(InputError, match=said) as error:
        read_groups(written(tmp_path / "bad.jsonl", lines))
    assert "bad.jsonl" in str(error.value)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "groups", "sentences", "negatives"),
    [
        ("captions/flickr30k_multi30k.jsonl", 31_014, 155_070, 0),
        ("captions/flickr8k.jsonl", 8_092, 40_459, 0),  # one caption is blank
        ("paraphrases/parade.jsonl", 4_778, 9_556, 5_404),
        ("lexical/counterfit_ppdb_antonyms.txt", 638, 1_276, 0),
        ("paraphrases/quora_labelled.jsonl", 17_075, 34_150, 22_130),
    ],
)
def test_real_files(shared_data, name, groups, sentences, negatives):
    read = read_groups(shared_data / name)
    assert (len(read), len(read.sentences), len(read.negatives)) == (groups, sentences, negatives)
    assert (read.offsets[-1], read.dropped) == (sentences, 0)
