"""Word vectors from neighbouring words."""

import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.training.initial_rows import Cooccurrences, _factors


def ragged(texts):
    texts = list(texts)
    flat = np.array(list(itertools.chain(*texts)), np.int32)
    return Ragged(flat, offsets_of(np.array([len(text) for text in texts], np.int64)))


def plain_counts(texts, words):
    """The sums of 1/distance of all pairs of words up to five apart, by plain loops."""
    counts = np.zeros((words, words))
    for text in texts:
        known = [word for word in text if word < words]
        for one, other in itertools.combinations(range(len(known)), 2):
            if other - one <= 5:
                counts[known[one], known[other]] += 1 / (other - one)
    return counts + counts.T


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=8))
def test_counts_are_those_of_plain_loops(texts):
    counts = Cooccurrences(8, seed=0)
    counts._shares[:] = 1
    for text in texts:
        counts.add(ragged([text]))
    counts._count()
    found = counts._counts.toarray()
    np.testing.assert_allclose(found + found.T, plain_counts(texts, 8), rtol=1e-6)


def topics(generator, count):
    """Texts of ten words of one of two topics: words 0 to 29, or 30 to 59."""
    for topic in generator.integers(0, 2, count):
        yield (30 * topic + generator.integers(0, 30, 10)).tolist()


def test_words_of_one_topic_are_alike():
    counts = Cooccurrences(70, seed=1)
    counts._shares[:] = 1  # so few words are all frequent
    counts.add(ragged(topics(np.random.default_rng(0), 2_000)))
    rows = counts.rows(16)
    assert (rows.shape, rows.dtype) == ((70, 16), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows[:60], axis=1), 1, rtol=1e-5)
    assert not rows[60:].any()  # words without neighbours
    alike = rows @ rows.T
    assert alike[:30, :30].mean() > alike[:30, 30:60].mean() + 0.2


@settings(max_examples=5)
@given(st.integers(1, 5))
def test_the_same_text_in_other_portions_gives_the_same_rows(portions):
    texts = list(topics(np.random.default_rng(0), 500))
    whole, parts = Cooccurrences(60, seed=1), Cooccurrences(60, seed=1)
    whole._shares[:] = parts._shares[:] = 0.5
    whole.add(ragged(texts))
    for part in np.array_split(np.arange(500), portions):
        parts.add(ragged([texts[index] for index in part]))
    np.testing.assert_array_equal(whole.rows(8), parts.rows(8))


def test_ids_in_any_order_are_skipped_by_their_counts():
    texts = ragged([[7, 3, 7, 5], [7, 9], []] * 400 + [[2]])
    counts = Cooccurrences(12, seed=0, ranked=False)
    counts.add(ragged([[]]))
    counts.add(texts)
    assert counts.most_frequent(2).tolist() == [7, 3]
    expected = np.sqrt(1e-4 / np.array([1200, 400, 1]) * texts.ids.size)
    np.testing.assert_allclose(counts._shares[[7, 3, 2]], expected.clip(max=1))
    assert counts._shares[0] == 1


def test_ranked_ids_are_in_order_of_frequency():
    counts = Cooccurrences(1_000, seed=0)
    assert counts.most_frequent(150).tolist() == list(range(150))
    assert len(Cooccurrences(9, seed=0).most_frequent(150)) == 9


def test_more_columns_than_words_are_zero():
    counts = Cooccurrences(60, seed=1)
    counts._shares[:] = 1
    counts.add(ragged(topics(np.random.default_rng(0), 500)))
    rows = counts.rows(100)
    assert rows.shape == (60, 100)
    assert not rows[:, 60:].any()


def test_factors_are_those_of_a_full_decomposition():
    generator = np.random.default_rng(0)
    dense = generator.random((300, 12)) @ generator.random((12, 300))
    dense += generator.random((300, 300)) * 0.01
    left, values, _ = np.linalg.svd(dense)
    expected = left[:, :8] * np.sqrt(values[:8])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = _factors(sp.csr_matrix(dense.astype(np.float32)), 8, generator)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=0.01)
