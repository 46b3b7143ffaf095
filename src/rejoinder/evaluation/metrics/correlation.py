"""Correlations of predictions with gold: over all items, over subsets, of a regression."""

import re
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.intervals import Interval, Test, paired_bootstrap, williams
from rejoinder.evaluation.items import Items, subsets_of
from rejoinder.evaluation.metrics.base import INTERVAL_RESAMPLES, Metric, MetricPattern
from rejoinder.measures import (
    Floats,
    Indices,
    ScoringError,
    pearson_correlation,
    ranks,
    row_correlations,
    spearman_correlation,
)


def correlations(x: Floats, gold: Floats) -> dict[str, float]:
    """Returns Pearson's r and Spearman's rho of (N,) predictions with gold.

    Raises:
        ScoringError: a value is not finite, or one side is constant.
    """
    return {"pearson": pearson_correlation(x, gold), "spearman": spearman_correlation(x, gold)}


def rescaled(values: Floats) -> Floats:
    """Returns (N,) values stretched to the scale of gold: the smallest is 0, the largest 5.

    Cer et al. 2017, footnote 20.

    Raises:
        ScoringError: all values are equal.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise ScoringError("scores that are all equal can't be rescaled to 0-5.")
    return 5 * (values - low) / (high - low)


def share_within_one(values: Floats, gold: Floats) -> float:
    """Returns the share of rescaled (N,) values within 1.0 of gold (Cer et al. 2017, §6.6)."""
    return float((np.abs(rescaled(values) - gold) <= 1.0).mean())


def _whole(items: Items) -> list[Indices]:
    return [np.arange(len(items.gold))]


def _subsets(items: Items) -> list[Indices]:
    return list(subsets_of(items.ids).values())


def _recompute_trained(items: Items) -> dict[str, float]:
    scores = correlations(items.predictions, items.gold)
    error = float(np.mean((items.predictions - items.gold) ** 2))
    return {**{f"{name}_trained": value for name, value in scores.items()}, "mse": error}


def _by_subset(items: Items) -> dict[str, dict[str, float]]:
    return {
        name: correlations(items.predictions[rows], items.gold[rows])
        for name, rows in sorted(subsets_of(items.ids).items())
    }


def _recompute_subsets(items: Items) -> dict[str, float]:
    """Returns three scores over subsets: mean, weighted mean, and all items as a single set."""
    parts = _by_subset(items)
    sizes = [len(rows) for _, rows in sorted(subsets_of(items.ids).items())]
    scores = {}
    for kind, score in correlations(items.predictions, items.gold).items():
        values = [part[kind] for part in parts.values()]
        scores[f"{kind}_mean"] = float(np.mean(values))
        scores[f"{kind}_weighted_mean"] = float(np.average(values, weights=sizes))
        scores[f"{kind}_all"] = score
    return scores


def _recompute_tracks(items: Items) -> dict[str, float]:
    return {f"pearson_{name}": part["pearson"] for name, part in _by_subset(items).items()}


def _rank_errors(items: Items) -> Floats:
    """Returns distances of ranks: similarities have another scale than gold."""
    return np.abs(ranks(items.predictions) - ranks(items.gold))


def _correlation(
    name: str,
    recompute: Callable[[Items], Mapping[str, float]],
    groups: Callable[[Items], list[Indices]],
) -> Metric:
    """Returns the metric of a mean of Pearson's r over groups of items, weighted by their sizes."""
    return Metric(name, recompute, _rank_errors, partial(_test, groups))


def _test(
    groups_of: Callable[[Items], list[Indices]], first: Items, second: Items, seed: int, draws: int
) -> tuple[Test, Interval]:
    """Tests one correlation by Williams' test, a mean of several by a paired bootstrap."""
    a, b, gold = first.predictions, second.predictions, first.gold
    groups = groups_of(first)
    sizes = np.array([len(rows) for rows in groups])
    count = int(sizes.sum())

    def difference(draws: Indices) -> Floats:
        """Returns (B,) differences of (B, N) draws of items, group after group."""
        total = np.zeros(len(draws))
        parts = np.split(draws, np.cumsum(sizes)[:-1], axis=1)
        for part, weight in zip(parts, sizes / count, strict=True):
            left = row_correlations(a[part], gold[part], constant=0.0)
            right = row_correlations(b[part], gold[part], constant=0.0)
            total += weight * (left - right)
        return total

    draws = INTERVAL_RESAMPLES if len(groups) == 1 else max(INTERVAL_RESAMPLES, draws)
    test, interval = paired_bootstrap(difference, count, seed, groups, draws)
    if len(groups) == 1:
        rows = groups[0]
        test = williams(
            _bounded_correlation(a[rows], gold[rows]),
            _bounded_correlation(b[rows], gold[rows]),
            _bounded_correlation(a[rows], b[rows]),
            len(rows),
        )
    return test, interval


def _bounded_correlation(x: Floats, y: Floats) -> float:
    """Returns Pearson's r within [-1, 1]; rounding makes that of equal arrays a little more."""
    return min(1.0, max(-1.0, pearson_correlation(x, y)))


def _track(match: re.Match[str]) -> Metric:
    name, track = match[0], match[1]

    def groups(items: Items) -> list[Indices]:
        subsets = subsets_of(items.ids)
        if track not in subsets:
            raise InputError(f"no item is of {track}.")
        return [subsets[track]]

    return _correlation(name, _recompute_tracks, groups)


PEARSON = _correlation("pearson", lambda items: correlations(items.predictions, items.gold), _whole)
PEARSON_TRAINED = _correlation("pearson_trained", _recompute_trained, _whole)
PEARSON_WEIGHTED_MEAN = _correlation("pearson_weighted_mean", _recompute_subsets, _subsets)
PEARSON_TRACK = MetricPattern("pearson_trackN", r"pearson_(track\d[ab]?)", _track)
