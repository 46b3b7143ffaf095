"""Dedupe finds what means the same, says why, and changes its threshold without new work.

Numbers and unknown words tell texts apart that embeddings don't.
"""

import json

import numpy as np
import polars as pl
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import rejoinder
from rejoinder import Duplicates, Index, dedupe
from rejoinder.conversations.collection import open_collection
from rejoinder.conversations.dedupe import differing, marks_of
from rejoinder.conversations.duplicates import FILE
from rejoinder.errors import InputError
from rejoinder.inference.near_pairs import NearPairs
from runs import same_files

QUESTIONS = [
    "Hello everybody, how do I reset my password? Thanks!",
    "Is the office open on Sunday?",
    "How do I reset my password?",
    "how can I reset my password",
    "I like pizza.",
    "Why do I get error 404?",
    "Why do I get error 500?",
    "Is the office open on Sunday",
]


@pytest.fixture(scope="module")
def collection():
    return open_collection(QUESTIONS, "rejoinder-base")


@pytest.fixture(scope="module")
def found(collection):
    return dedupe(collection, threshold=0.85)


def test_a_result_says_what_is_kept_and_for_what_others_are_dropped(found):
    assert found.selected == [QUESTIONS[row] for row in (0, 1, 4, 5, 6)]
    assert [(one.text, one.kept) for one in found.filtered] == [
        (QUESTIONS[2], QUESTIONS[0]), (QUESTIONS[3], QUESTIONS[0]), (QUESTIONS[7], QUESTIONS[1]),
    ]  # fmt: skip
    assert found.filtered[0].score == 1
    assert all(one.score >= 0.85 for one in found.filtered)
    assert found.duplicate_ratio == 3 / 8
    assert found.exact_duplicate_ratio == 1 / 8
    assert [group.size for group in found.groups] == [3, 2]
    assert [one.index for one in found.groups[0].dropped] == [2, 3]
    assert (found.threshold, found.estimate.basis) == (0.85, "given")


def test_it_is_shown_by_its_largest_groups(found):
    title, header, *rows = repr(found).splitlines()
    assert title == "8 texts, 5 kept, 3 dropped in 2 groups, threshold 0.850"
    assert header.split() == ["kept", "size", "least", "text"]
    assert [QUESTIONS[0] in rows[0], QUESTIONS[1] in rows[1]] == [True, True]
    assert title in found._repr_html_()
    assert len(repr(dedupe([f"case {n} of {n}" for n in range(3_000)] * 2))) < 2_000


def test_tables_take_the_rows(found):
    frame = pl.DataFrame(found.to_dicts())
    assert frame["kept_id"].to_list() == ["1", "2", "1", "1", "5", "6", "7", "2"]
    assert frame["size"].to_list() == [3, 2, 3, 3, 1, 1, 1, 2]


def test_another_threshold_gives_what_a_new_run_does(collection, found):
    for threshold in (0.8, 0.95, 1.0):
        again, new = found.rethreshold(threshold), dedupe(collection, threshold=threshold)
        assert again.to_dicts() == new.to_dicts()
        assert again.estimate == new.estimate
    with pytest.raises(InputError, match="floor"):
        found.rethreshold(0.5)
    low = dedupe(collection, threshold=0.9, floor=0.6)
    assert low.rethreshold(0.6).to_dicts() == dedupe(collection, threshold=0.6).to_dicts()


def test_a_saved_result_is_the_same(found, tmp_path):
    found.save(tmp_path / "a")
    again = Duplicates.load(tmp_path / "a")
    assert again.to_dicts() == found.to_dicts()
    assert again.summary() == found.summary()
    assert again.rethreshold(0.95).to_dicts() == found.rethreshold(0.95).to_dicts()
    again.save(tmp_path / "b")
    assert same_files(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InputError, match="overwrite"):
        found.save(tmp_path / "a")
    with pytest.raises(InputError, match="read"):
        found.save(tmp_path / "a", overwrite=True, inputs=[tmp_path / "a"])


def test_a_damaged_result_is_refused(found, tmp_path):
    for name in "bcd":
        found.save(tmp_path / name)
    path = tmp_path / "b" / FILE
    content = path.read_bytes()
    with safe_open(path, "numpy") as file:
        facts = file.metadata()
    save_file({**(tensors := load_file(path)), "first": tensors["first"] + 99}, path, facts)
    (tmp_path / "c" / FILE).write_bytes(content[:-9])
    (tmp_path / "d" / FILE).write_bytes(content.replace(b"floor", b"fl00r"))
    for name in "bcde":
        with pytest.raises(InputError, match=FILE):
            Duplicates.load(tmp_path / name)


def test_a_folder_has_the_kept_and_the_dropped(found, tmp_path):
    found.save(tmp_path / "out")
    kept, dropped = (
        [json.loads(line) for line in (tmp_path / "out" / name).read_text("utf-8").splitlines()]
        for name in ("kept.jsonl", "dropped.jsonl")
    )
    assert [(row["id"], row["size"]) for row in kept] == [
        ("1", 3), ("2", 2), ("5", 1), ("6", 1), ("7", 1),
    ]  # fmt: skip
    assert [(row["id"], row["kept_id"], row["kept"]) for row in dropped] == [
        (one.id, one.kept_id, one.kept) for one in found.filtered
    ]
    assert open_collection(tmp_path / "out" / "kept.jsonl").texts == found.selected


def test_examples_choose_the_threshold(collection, tmp_path):
    pairs = [
        ("How do I reset my password?", "how can I reset my password", True),
        ("Is the office open on Sunday?", "Is the office closed on Sunday?", False),
        ("I like pizza.", "The weather is fine.", False),
        ("Where do you live?", "Where is your home?", True),
    ]
    found = dedupe(collection, examples=pairs)
    assert found.estimate.basis == "examples"
    assert found.estimate.f1 is not None
    rows = [{"sentence1": one, "sentence2": two, "label": int(same)} for one, two, same in pairs]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert dedupe(collection, examples=tmp_path / "pairs.jsonl").estimate == found.estimate
    for kind in (True, False):
        with pytest.raises(InputError, match="both kinds"):
            dedupe(collection, examples=[pair for pair in pairs if pair[2] is kind])


def test_by_default_a_rate_chooses_it():
    words = ["printer", "invoice", "password", "office", "holiday", "router", "salary", "badge"]
    texts = [f"Where is the {one} of the {two}?" for one in words for two in words]
    found = dedupe([*texts, *texts[:9]], "rejoinder-small")
    assert found.estimate.basis in ("false positives", "default")
    assert found.duplicate_ratio >= 9 / 73
    strict = dedupe(texts, "rejoinder-small", false_positives=1e-6)
    assert strict.threshold >= found.threshold
    assert found.search_recall == 1


def test_an_index_needs_no_model(tmp_path, monkeypatch):
    Index.create(tmp_path / "index", QUESTIONS, "rejoinder-base")
    expected = dedupe(tmp_path / "index", threshold=0.85).to_dicts()
    monkeypatch.setattr("rejoinder.conversations.collection.place_of_model", _gone)
    assert [row["kept"] for row in dedupe(tmp_path / "index", threshold=0.85).to_dicts()] == [
        row["kept"] for row in expected
    ]


def _gone(_opened):
    raise InputError("gone")


def test_texts_without_a_known_word_are_the_same_only_if_they_are_equal():
    found = dedupe(["Zyxqv", "Qqzzj", "Zyxqv", "pizza"], "rejoinder-small", threshold=0.9)
    assert [one.index for one in found.filtered] == [2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 2}, {"threshold": 0.1}, {"threshold": True}, {"false_positives": 0},
        {"threshold": 0.9, "false_positives": 0.1}, {"threshold": 0.9, "floor": 0.95},
        {"examples": []}, {"columns": "text=a"}, {"encoder": "rejoinder-small"},
    ],
)  # fmt: skip
def test_what_is_not_valid_is_refused(collection, wrong):
    with pytest.raises(InputError):
        dedupe(collection, **wrong)


def test_one_text_is_kept():
    found = dedupe(["Hello"], "rejoinder-small")
    assert (found.selected, found.groups, found.duplicate_ratio) == (["Hello"], [], 0)
    assert np.isfinite(found.threshold)
    assert rejoinder.Duplicates is Duplicates


TEXTS = [
    "Error 404",
    "error 404!",
    "Error 500",
    "An error",
    "Error 404 on Windows 10",
    "zyx",
    "qwv",
]


def differ(one, other, marks):
    pair = NearPairs(len(marks), np.array([one]), np.array([other]), np.ones(1, np.float32))
    return bool(differing(pair, marks)[0])


def test_texts_differ_if_each_has_a_number_that_the_other_lacks():
    marks = marks_of(TEXTS)
    assert not differ(0, 1, marks)
    assert differ(0, 2, marks)
    assert not differ(0, 3, marks)
    assert not differ(0, 4, marks)
    assert differ(2, 4, marks)


def test_unknown_words_tell_apart():
    def unknown(words):
        return np.array([word in ("zyx", "qwv") for word in words])

    assert not differ(5, 6, marks_of(TEXTS))
    assert differ(5, 6, marks_of(TEXTS, unknown))
    assert not differ(3, 6, marks_of(TEXTS, unknown))


def test_a_long_text_has_none():
    assert marks_of(["In 1999 " + "it was " * 9]) == [frozenset()]


def test_no_words_have_no_marks():
    assert marks_of([], np.array) == []
    assert marks_of(["?!", ""]) == [frozenset(), frozenset()]
