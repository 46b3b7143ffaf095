"""Measures against SciPy and against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rejoinder.errors import InputError
from rejoinder.measures import (
    angular_similarity,
    cosines,
    pearson_correlation,
    row_correlations,
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


def test_rows_are_correlated_one_by_one():
    x = np.array([[1.0, 2, 4], [3, 3, 3], [5, 1, 2]])
    y = np.array([[2.0, 1, 5], [1, 2, 3], [1, 5, 4]])
    rows = row_correlations(x, y, constant=0.0)
    assert rows[1] == 0
    assert rows[0] == pearson_correlation(x[0], y[0])
    assert rows[2] == pearson_correlation(x[2], y[2])
    with pytest.raises(InputError, match="constant"):
        row_correlations(x, y)
