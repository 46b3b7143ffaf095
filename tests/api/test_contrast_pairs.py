"""Pairs of nearly the same words that say something else."""

import json
from random import Random

import pytest

from rejoinder.api.scorer import (
    MOST,
    SCORE,
    TRANSLATIONS,
    contrast_pairs,
    exchanged,
    negated,
    opposite,
    renumbered,
)
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.tasks.contrasts import made_contrasts, read_contrasts


@pytest.fixture
def data(tmp_path):
    sentences = [
        *(f"She has {number} friends in Oslo." for number in range(2, 400)),
        *(f"The {animal} chased my {other} today." for animal in ("dog", "cow", "cat", "fox")
          for other in ("horse", "sheep", "goose", "rabbit")),
        *read_contrasts().frame["anchor"], *made_contrasts().frame["anchor"],
        "He lives in Bergen now.", "Yes.",
    ]  # fmt: skip
    path = tmp_path / TRANSLATIONS
    path.parent.mkdir()
    path.write_text("".join(json.dumps({"sentences": [text, "b"]}) + "\n" for text in sentences))
    return tmp_path


def test_sentences_are_changed(data):
    pairs = contrast_pairs(data)
    assert {*pairs.genres} == {"negation", "numbers", "names", "order", "opposites"}
    assert pairs.genres.count("numbers") == MOST
    assert {*pairs.gold.tolist()} == {SCORE}
    assert all(a != b for a, b in zip(pairs.first, pairs.second, strict=True))
    for held_out in (read_contrasts().frame, made_contrasts().frame):
        assert not {*pairs.first} & {*held_out["anchor"], *held_out["same"], *held_out["different"]}


def test_the_seed_chooses(data):
    again, other = contrast_pairs(data), contrast_pairs(data, seed=1)
    assert contrast_pairs(data).second == again.second != other.second


def test_data_without_the_file(tmp_path):
    with pytest.raises(DataMissingError):
        contrast_pairs(tmp_path)


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (negated, "It isn't far.", "It is far."), (negated, "They work.", "They don't work."),
        (negated, "She sings.", None), (renumbered, "No one came.", None),
        (exchanged, "Anna called Bob.", "Bob called Anna."), (exchanged, "It is a trap.", None),
        (opposite, "zyxxyq", None),
    ],
)  # fmt: skip
def test_changes_written_out(change, text, expected):
    assert change(text, Random(0)) == expected


def test_changed_words_are_others():
    for seed in range(20):
        assert renumbered("I saw 7 birds and two cats.", Random(seed)).split()[2] != "7"
        assert opposite("The water is hot.", Random(seed)) not in (None, "The water is hot.")
