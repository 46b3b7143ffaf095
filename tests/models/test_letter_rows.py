"""Rows of letters: a ridge regression, and forms of a word that are near it."""

import numpy as np

from rejoinder.models import smaller
from rejoinder.models.smaller import fit_letters, letter_counts, turned, with_letter_rows
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary, letter_buckets

STEMS = ("kitap", "okul", "deniz", "masa", "yol", "araba")
ENDINGS = ("", "lar", "da", "dan", "lari")


def test_it_is_the_ridge_regression_of_the_rows(monkeypatch):
    monkeypatch.setattr(smaller, "_ITERATIONS", 60)
    words = [stem + ending for stem in STEMS for ending in ENDINGS]
    rows = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
    counts = np.zeros((len(words), 300))
    for row, word in enumerate(words):
        np.add.at(counts[row], letter_buckets(word, 300), 1)
    penalty = smaller._PENALTY * np.eye(300)
    expected = np.linalg.solve(counts.T @ counts + penalty, counts.T @ rows)
    np.testing.assert_allclose(fit_letters(letter_counts(words, 300), rows), expected, atol=1e-4)


def test_a_form_that_was_not_met_is_near_the_others():
    words = [stem + ending for stem in STEMS for ending in ENDINGS]
    meaning = np.eye(len(STEMS), dtype=np.float32)
    rows = 5 * np.repeat(meaning, len(ENDINGS), axis=0)
    fitted = fit_letters(letter_counts(words, 5_000), rows)
    for number, stem in enumerate(STEMS):
        assert fitted[letter_buckets(stem + "larimiz", 5_000)].sum(axis=0).argmax() == number


def test_a_rare_word_turns_towards_its_letters_and_a_frequent_one_does_not():
    words = [stem + ending for ending in ENDINGS for stem in STEMS]
    rows = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
    counts = letter_counts(words, 300)
    spelt = np.asarray(counts @ fit_letters(counts, rows))
    made = turned(rows, spelt)
    np.testing.assert_allclose(made[0], rows[0], rtol=1e-6)
    np.testing.assert_allclose(
        np.linalg.norm(made, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5
    )
    cosines = [np.sum(each * spelt, axis=1) / np.linalg.norm(each, axis=1) for each in (rows, made)]
    assert np.all(cosines[1][1:] >= cosines[0][1:])


def test_an_unknown_word_is_nearly_as_long_as_a_rare_one():
    words = tuple(stem + ending for ending in ENDINGS for stem in STEMS)
    rows = np.random.default_rng(0).standard_normal((len(words) + 3, 8)).astype(np.float32)
    features = WordFeatures(Vocabulary(words), unknown_buckets=3)
    features, made = with_letter_rows(features, rows, 300)
    assert (features.unknown_buckets, features.letter_buckets) == (0, 300)
    assert len(made) == len(words) + 300
    rare = words[-len(words) // 4 :]
    spelt = [made[len(words) + letter_buckets(word, 300)].sum(axis=0) for word in rare]
    short = np.median(np.linalg.norm(spelt, axis=1))
    long = np.median(np.linalg.norm(rows[: len(words)][-len(rare) :], axis=1))
    assert 0.8 < short / long < 0.9
