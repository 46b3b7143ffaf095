"""Power laws: exact points are met, bounds hold, and intervals hold what they should."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from power_law import extrapolate, fit_power_law
from rejoinder.errors import InputError

SIZES = np.repeat([2e5, 7e5, 2e6], 3)
TRUE_AT = 0.85 - 0.2 * (6e8 / 1e5) ** -0.25


def true_scores(seed: int, spread: float) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, spread, len(SIZES))
    return 0.85 - 0.2 * (SIZES / 1e5) ** -0.25 + noise


@settings(max_examples=20)
@given(st.floats(0.2, 1), st.floats(0.01, 0.5), st.floats(0.05, 1))
def test_points_of_a_law_give_that_law(limit, gain, exponent):
    sizes = np.array([1e5, 3e5, 1e6, 1e7])
    law = fit_power_law(sizes, limit - gain * (sizes / 1e5) ** -exponent)
    assert law(sizes) == pytest.approx(limit - gain * (sizes / 1e5) ** -exponent, abs=1e-3)
    assert law.limit <= 1
    assert law.gain >= 0


def test_a_limit_above_1_is_not_believed():
    sizes = np.array([1e5, 1e6, 1e7])
    law = fit_power_law(sizes, np.array([0.3, 0.6, 0.95]))
    assert law.limit == 1
    assert (law(np.array([1e8, 1e12])) <= 1).all()


@pytest.mark.parametrize("scores", [[0.5, 0.5, 0.5], [0.6, 0.5, 0.4]])
def test_scores_that_do_not_grow_give_their_mean(scores):
    law = fit_power_law(np.array([1e5, 1e6, 1e7]), np.array(scores))
    assert law(np.array([1e9])) == pytest.approx(0.5)


def test_the_interval_holds_the_truth_and_grows_with_the_spread():
    near, far = np.array([2e6]), np.array([6e8])
    found = extrapolate(SIZES, true_scores(0, 0.003), far, draws=200)
    assert found.low[0] <= found.scores[0] <= found.high[0]
    assert found.low[0] < TRUE_AT < found.high[0]
    wider = extrapolate(SIZES, true_scores(0, 0.01), far, draws=200)
    inside = extrapolate(SIZES, true_scores(0, 0.003), near, draws=200)
    width = found.high[0] - found.low[0]
    assert wider.high[0] - wider.low[0] > width > inside.high[0] - inside.low[0]


def test_the_same_points_give_the_same_interval():
    one, other = (extrapolate(SIZES, true_scores(1, 0.01), SIZES[:1], draws=20) for _ in range(2))
    assert (one.low, one.high) == (other.low, other.high)


def test_points_that_tell_too_little_are_errors():
    sizes, scores = np.array([1e5, 1e6, 1e7]), np.array([0.4, 0.6, 0.7])
    with pytest.raises(InputError, match="three different sizes; got 2"):
        fit_power_law(sizes[[0, 1, 1]], scores)
    with pytest.raises(InputError, match="3 points leave no error"):
        extrapolate(sizes, scores, sizes)
    with pytest.raises(InputError, match="sizes above 0 and scores from -1 to 1"):
        fit_power_law(sizes, scores * 100)
    with pytest.raises(InputError, match="not finite"):
        fit_power_law(sizes, np.array([0.4, math.nan, 0.7]))
