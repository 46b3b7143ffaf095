"""Metrics against SciPy and against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rejoinder.errors import InputError
from rejoinder.evaluation.intervals import correlation_interval, mean_interval
from rejoinder.evaluation.metrics import (
    angular_similarity,
    cosines,
    pearson_correlation,
    precision_at,
    spearman_correlation,
)

values = st.lists(st.integers(-5, 5), min_size=3, max_size=30).filter(lambda v: len(set(v)) > 1)


@given(values, st.integers(0, 999))
def test_correlations_are_scipys(x, seed):
    y = np.random.default_rng(seed).integers(-3, 4, len(x)).astype(float)
    y[0] = 9.0
    x = np.array(x, float)
    assert pearson_correlation(x, y) == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    assert spearman_correlation(x, y) == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)


def test_undefined_correlations_are_errors():
    one, two = np.ones(3), np.arange(3.0)
    with pytest.raises(InputError, match="constant"):
        pearson_correlation(one, two)
    with pytest.raises(InputError, match="score 1 is not finite"):
        spearman_correlation(np.array([1, math.nan, 2]), two)
    # its square overflows, and the quotient would be zero
    with pytest.raises(InputError, match=r"score 2 is -1e\+155; at most 1e\+70"):
        pearson_correlation(np.array([1, 2, -1e155]), two)


def test_cosine_of_a_zero_vector_is_zero_and_counted():
    a = np.array([[1, 0], [0, 0], [3, 4]], np.float32)
    b = np.array([[1, 1], [1, 0], [3, 4]], np.float32)
    cosine, zeros = cosines(a, b)
    assert cosine.tolist() == pytest.approx([math.sqrt(0.5), 0, 1])
    assert zeros == 1
    angles = angular_similarity(cosine)
    assert angles.tolist() == pytest.approx([-math.pi / 4, -math.pi / 2, 0], abs=1e-7)


def test_precision_counts_ranks_within():
    ranks = np.array([1, 2, 3, 11])
    assert [precision_at(ranks, n) for n in (1, 3, 10)] == [0.25, 0.75, 0.75]


def test_intervals_cover_what_theory_says():
    hits = (np.arange(1_000) < 300).astype(float)
    low, high = mean_interval(hits, seed=0)
    error = 1.96 * math.sqrt(0.3 * 0.7 / 1_000)
    assert (low, high) == pytest.approx((0.3 - error, 0.3 + error), abs=0.004)
    assert mean_interval(hits, seed=0) == (low, high)
    generator = np.random.default_rng(1)
    x = generator.normal(size=500)
    y = x + generator.normal(size=500)
    r = pearson_correlation(x, y)
    fisher = 1.96 / math.sqrt(497)
    expected = (math.tanh(math.atanh(r) - fisher), math.tanh(math.atanh(r) + fisher))
    assert correlation_interval(x, y, 0) == pytest.approx(expected, abs=0.015)
    low, high = correlation_interval(x, y, 0, ranks=True)
    assert low < spearman_correlation(x, y) < high
