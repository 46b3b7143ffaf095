"""Tests of significance: published figures, other ways to the same, and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from rejoinder.errors import InputError
from rejoinder.evaluation import intervals
from rejoinder.evaluation.intervals import holm, mcnemar, paired_bootstrap, williams
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.results import Result


def steiger(r_ax, r_bx, r_ab, n):
    """What `williams` tests, by Fisher's z (Steiger 1980, eq. 14, with the mean correlation)."""
    mean = (r_ax + r_bx) / 2
    rest = 1 - 2 * mean**2
    covariance = (r_ab * rest - mean**2 / 2 * (rest - r_ab**2)) / (1 - mean**2) ** 2
    difference = math.atanh(r_ax) - math.atanh(r_bx)
    statistic = difference * math.sqrt((n - 3) / (2 - 2 * covariance))
    return intervals.Test(statistic, float(2 * stats.norm.sf(abs(statistic))), "steiger", n)


def test_williams_on_a_worked_example():
    """The R package psych's documentation: n 103, .4 against .5, correlated by .1: t = -0.89."""
    test = williams(0.4, 0.5, 0.1, 103)
    assert test.statistic == pytest.approx(-0.89, abs=0.005)
    assert test.p == pytest.approx(0.37, abs=0.01)


def test_williams_and_steiger_agree_on_large_samples():
    for r_ab in (0.2, 0.7, 0.95):
        one, two = williams(0.72, 0.73, r_ab, 2_000), steiger(0.72, 0.73, r_ab, 2_000)
        assert one.p == pytest.approx(two.p, rel=0.15)
        assert one.statistic < 0


def test_correlations_that_are_none_are_refused():
    with pytest.raises(InputError, match="4"):
        williams(0.1, 0.2, 0.3, 3)
    with pytest.raises(InputError, match=r"1\.2"):
        williams(1.2, 0.1, 0.1, 50)


@pytest.mark.parametrize("test", [williams, steiger])
def test_two_equal_correlations_are_told_apart_one_time_in_twenty(test):
    generator = np.random.default_rng(0)
    n, draws = 100, 4_000
    gold = generator.standard_normal((draws, n))
    shared = generator.standard_normal((draws, n))
    a = gold + shared + generator.standard_normal((draws, n))
    b = gold + shared + generator.standard_normal((draws, n))

    def r(x, y):
        x = x - x.mean(1, keepdims=True)
        y = y - y.mean(1, keepdims=True)
        return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))

    triples = zip(r(a, gold), r(b, gold), r(a, b), strict=True)
    rate = np.mean([test(*triple, n).p < 0.05 for triple in triples])
    assert 0.04 <= rate <= 0.06


def test_mcnemar_by_hand():
    first = np.array([True] * 8 + [False] * 2 + [True] * 90)
    second = np.array([False] * 8 + [True] * 2 + [True] * 90)
    test = mcnemar(first, second)
    ways = [math.comb(10, k) / 1_024 for k in range(3)]
    assert test.p == pytest.approx(2 * sum(ways) - ways[2])
    assert mcnemar(first, first).p == 1


def test_mcnemar_keeps_its_level():
    generator = np.random.default_rng(1)
    rejected = 0
    for _ in range(4_000):
        hard = generator.random(400) < 0.5
        a = np.where(hard, generator.random(400) < 0.5, True)
        b = np.where(hard, generator.random(400) < 0.5, True)
        rejected += mcnemar(a, b).p < 0.05
    assert 0.04 <= rejected / 4_000 <= 0.06


def test_the_bootstrap_keeps_its_level_and_finds_differences():
    generator = np.random.default_rng(2)
    rejected = 0
    for seed in range(4_000):
        change = generator.standard_normal(200)
        test, _ = paired_bootstrap(lambda rows, c=change: c[rows].mean(1), 200, seed, resamples=100)
        rejected += test.p < 0.05
    assert 0.04 <= rejected / 4_000 <= 0.06
    change = 0.3 + generator.standard_normal(200)
    test, (low, high) = paired_bootstrap(lambda rows: change[rows].mean(1), 200, 0)
    t = stats.ttest_1samp(change, 0)
    assert test.p == pytest.approx(t.pvalue, abs=0.002)
    expected = t.confidence_interval()
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.slow
def test_a_hundred_tasks_can_be_separable(tmp_path):
    draw = np.random.default_rng(0)
    gold = np.tile(np.arange(5.0), 8)
    ids = [f"part{row % 2}:{row}" for row in range(len(gold))]

    def results(noise):
        for task in range(120):
            predictions = gold + draw.normal(0, noise, len(gold))
            items = Items(ids, predictions, gold, [""] * len(ids))
            scores = metric_of("pearson_weighted_mean").recompute(items)
            yield Result(
                task=f"task{task}/cosine", split="test", n=len(gold), main="pearson_weighted_mean",
                scores=scores, intervals={}, groups={}, seed=0, data={"sha256": "0"}, items=items,
            )  # fmt: skip

    compared = compare(list(results(0.1)), list(results(3.0)))
    assert len(compared.tasks) == 120
    assert all(task.better == "first" for task in compared.tasks)


def test_the_number_of_items_is_that_of_the_test():
    draw = np.random.default_rng(0)
    gold = draw.uniform(0, 5, 70)
    ids = [f"track{1 + row % 7}:{row}" for row in range(70)]
    first, second = (Items(ids, gold + draw.normal(0, s, 70), gold, [""] * 70) for s in (1, 2))
    test, _ = metric_of("pearson_track5").test(first, second, 0, 100)
    assert test.n == 10
