"""Rows of letters: a ridge regression, and forms of a word that are near it."""

import numpy as np

from rejoinder.text.letters import letter_buckets
from rejoinder.training.rows import letters
from rejoinder.training.rows.letters import fit_letters, letter_counts, pulled_to_letters

STEMS = ("kitap", "okul", "deniz", "masa", "yol", "araba")
ENDINGS = ("", "lar", "da", "dan", "lari")


def test_it_is_the_ridge_regression_of_the_rows(monkeypatch):
    monkeypatch.setattr(letters, "_ITERATIONS", 60)
    words = [stem + ending for stem in STEMS for ending in ENDINGS]
    rows = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
    counts = np.zeros((len(words), 300))
    for row, word in enumerate(words):
        np.add.at(counts[row], letter_buckets(word, 300), 1)
    penalty = letters._PENALTY * np.eye(300)
    expected = np.linalg.solve(counts.T @ counts + penalty, counts.T @ rows)
    np.testing.assert_allclose(fit_letters(letter_counts(words, 300), rows), expected, atol=1e-4)


def test_a_form_that_was_not_met_is_near_the_others():
    words = [stem + ending for stem in STEMS for ending in ENDINGS]
    meaning = np.eye(len(STEMS), dtype=np.float32)
    rows = 5 * np.repeat(meaning, len(ENDINGS), axis=0)
    fitted = fit_letters(letter_counts(words, 5_000), rows)
    for number, stem in enumerate(STEMS):
        assert fitted[letter_buckets(stem + "larimiz", 5_000)].sum(axis=0).argmax() == number


def test_a_rare_word_is_moved_towards_its_letters_and_a_frequent_one_is_not():
    words = [stem + ending for ending in ENDINGS for stem in STEMS]
    rows = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
    counts = letter_counts(words, 300)
    letters = fit_letters(counts, rows)
    spelt = np.array([letters[letter_buckets(word, 300)].sum(axis=0) for word in words])
    moved = pulled_to_letters(counts, rows, letters)
    left = np.linalg.norm(moved - spelt, axis=1) / np.linalg.norm(rows - spelt, axis=1)
    np.testing.assert_array_equal(moved[0], rows[0])
    assert left[-1] < 0.35
    assert np.all(np.diff(left) < 0)
