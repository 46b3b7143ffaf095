"""Scores and intervals against their definitions."""

import math

import numpy as np
import pytest

from rejoinder.evaluation.intervals import correlation_interval, mean_interval
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.measures import pearson_correlation, spearman_correlation


def test_precision_counts_ranks_within():
    items = Items("abcd", np.array([1.0, 2, 3, 11]), np.ones(4))
    assert metric_of("P@3").recompute(items) == {"P@1": 0.25, "P@3": 0.75, "P@10": 0.75}


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


def test_few_items_have_an_interval_too():
    few = np.array([1.0, 2.0, 3.0])
    low, high = correlation_interval(few, few, 0)
    assert (low, high) == (0, pytest.approx(1))
