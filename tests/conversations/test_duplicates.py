"""Groups do not chain, and each has a kept row; thresholds follow from examples or from a rate."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.conversations.duplicates import (
    DEFAULT_THRESHOLD,
    LEAST_THRESHOLD,
    MOST_THRESHOLD,
    expected_at,
    group_pairs,
    threshold_of_examples,
    threshold_of_rate,
)
from rejoinder.inference.near_pairs import NearPairs


def pairs_of(rows, scores):
    """Pairs of a dict from two rows to their cosine."""
    first, second = (np.array([key[n] for key in scores], np.int32) for n in (0, 1))
    return NearPairs(rows, first, second, np.array([*scores.values()], np.float32))


def test_a_chain_is_cut():
    chain = pairs_of(4, {(0, 1): 0.9, (1, 2): 0.9, (2, 3): 0.9})
    kept = group_pairs(chain, 0.8)
    assert kept.heads.tolist() == [1, 1, 1, 3]
    np.testing.assert_allclose(kept.scores, [0.9, 1, 0.9, 1])


def test_a_row_goes_to_the_nearest_kept_one():
    star = pairs_of(5, {(0, 1): 0.8, (0, 2): 0.8, (2, 3): 0.85, (3, 4): 0.9})
    assert group_pairs(star, 0.8).heads.tolist() == [0, 0, 3, 3, 3]


def test_repeated_rows_are_kept():
    two = pairs_of(2, {(0, 1): 0.9})
    assert group_pairs(two, 0.8).heads.tolist() == [0, 0]
    assert group_pairs(two, 0.8, np.array([1, 5])).heads.tolist() == [1, 1]


scores = st.dictionaries(
    st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] < pair[1]),
    st.floats(0.5, 1, width=32),
)


@given(scores, st.floats(0.5, 1, width=32))
def test_every_member_is_near_its_kept_row_and_kept_rows_are_not(given_scores, threshold):
    kept = group_pairs(pairs_of(12, given_scores), threshold)
    heads = kept.heads.tolist()
    for row, head in enumerate(heads):
        assert heads[head] == head
        if row != head:
            score = given_scores.get((row, head), given_scores.get((head, row)))
            assert score is not None
            assert score >= np.float32(threshold)
            assert kept.scores[row] == np.float32(score)
    for (one, other), score in given_scores.items():
        if score >= np.float32(threshold):
            assert not heads[one] == one != heads[other] == other


def test_examples_give_the_best_f1():
    draw = np.random.default_rng(0)
    cosines = np.concatenate([draw.normal(0.8, 0.1, 300), draw.normal(0.5, 0.1, 500)])
    alike = np.arange(800) < 300
    found = threshold_of_examples(cosines, alike, 0.5)

    def f1(threshold):
        chosen = cosines >= threshold
        return 2 * (chosen & alike).sum() / (chosen.sum() + alike.sum())

    assert f1(found.threshold) == pytest.approx(max(map(f1, cosines)))
    assert found.f1 == pytest.approx(f1(found.threshold), abs=1e-4)
    assert found.precision == pytest.approx(alike[cosines >= found.threshold].mean(), abs=1e-4)


def test_equal_scores_are_not_divided():
    alike = np.array([True, False, False])
    found = threshold_of_examples(np.array([0.8, 0.8, 0.6]), alike, 0.5)
    assert (found.threshold, found.precision) == (0.7, 0.5)


def test_a_threshold_is_not_below_the_least():
    found = threshold_of_examples(np.array([0.4, 0.3, -1]), np.array([True, True, False]), 0.5)
    assert (found.threshold, found.recall) == (0.5, 0)


NONE = np.empty(0, np.float32)
NULL = NormalDist(0.6, 0.08)


def nearest(duplicates):
    """Nearest cosines of 20,000 texts, a share of which have a duplicate."""
    draw = np.random.default_rng(0)
    count = int(20_000 * duplicates)
    return np.concatenate([
        draw.normal(NULL.mean, NULL.stdev, 20_000 - count), draw.uniform(0.9, 1, count)
    ]).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize("duplicates", [0.0, 0.05])
def test_a_rate_holds_for_texts_without_a_duplicate(duplicates):
    found = threshold_of_rate(nearest(duplicates), NONE, 0.001)
    assert found.basis == "false positives"
    # fitted on the lower part, which duplicates hardly change
    assert 1 - NULL.cdf(found.threshold) == pytest.approx(0.001, rel=0.7)
    assert found.by_chance == pytest.approx(0.001, rel=0.5)


def test_a_smaller_rate_gives_a_higher_threshold_within_bounds():
    rates = (0.2, 0.01, 0.001, 1e-9)
    found = [threshold_of_rate(nearest(0.05), NONE, rate).threshold for rate in rates]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (LEAST_THRESHOLD, MOST_THRESHOLD)


def test_messages_next_to_each_other_are_not_taken_for_the_same():
    neighbours = np.linspace(0.3, 0.94, 5_000).astype(np.float32)
    found = threshold_of_rate(nearest(0.05), neighbours, 0.05)
    assert found.threshold == pytest.approx(0.3 + 0.64 * 0.95, abs=1e-3)
    assert found.neighbours == pytest.approx(0.05, abs=1e-3)
    assert threshold_of_rate(nearest(0.05), neighbours[:100], 0.05).neighbours is None


def test_where_most_texts_have_a_near_one_the_default_is_taken():
    crowd = np.random.default_rng(0).uniform(0.5, 1, 1_000).astype(np.float32)
    for given_nearest in (crowd, crowd[:9], NONE):
        found = threshold_of_rate(given_nearest, NONE, 0.001)
        assert (found.threshold, found.basis, found.by_chance) == (
            DEFAULT_THRESHOLD,
            "default",
            None,
        )
    assert expected_at(0.8, "given", NONE, NONE).threshold == 0.8
