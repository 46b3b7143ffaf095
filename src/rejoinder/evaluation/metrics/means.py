"""Means over items, and differences of the means of two groups, compared by a paired bootstrap."""

import numpy as np

from rejoinder.evaluation.intervals import Interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, compare_means
from rejoinder.evaluation.significance import RESAMPLES, Test, paired_bootstrap
from rejoinder.measures import Floats, Indices

_EQUAL = 1e-6
"""Standard deviations below this are rounding errors of float32 embeddings."""

MEAN_AVERAGE_PRECISION = Metric(
    name="map",
    recompute=lambda items: {"map": 100 * float(items.predictions.mean())},
    errors=lambda items: items.gold - items.predictions,
    test=lambda first, second, seed, draws: compare_means(
        first.predictions, second.predictions, seed, draws, unit=100
    ),
    percent=True,
)
"""The mean of the average precision of ranked lists, in percent. An item is a query, its prediction
the average precision of its list from 0 to 1."""


def _distances(items: Items) -> Floats:
    return np.abs(items.predictions - items.gold)


MEAN_ABSOLUTE_ERROR = Metric(
    name="mean_absolute_error",
    recompute=lambda items: {"mean_absolute_error": float(_distances(items).mean())},
    errors=_distances,
    test=lambda first, second, seed, draws: compare_means(
        _distances(first), _distances(second), seed, draws
    ),
    higher_is_better=False,
)
"""The mean distance of predictions from gold, on the scale of gold."""


def effect_sizes(first: Floats, second: Floats) -> Floats:
    """Returns the difference of the means of two groups in standard deviations of both together.

    `first` (..., N) and `second` (..., M) are associations; the result has their other axes. It is
    0 where all associations are equal. Caliskan et al. 2017, eq. for d.
    """
    spread = np.concatenate([first, second], axis=-1).std(axis=-1, ddof=1)
    difference = first.mean(axis=-1) - second.mean(axis=-1)
    return np.where(spread > _EQUAL, difference / np.maximum(spread, _EQUAL), 0.0)


def _effects(items: Items) -> dict[str, float]:
    of_first = items.gold == 1
    size = float(effect_sizes(items.predictions[of_first], items.predictions[~of_first]))
    return {"absolute_effect_size": abs(size), "effect_size": size}


def _test_effects(first: Items, second: Items, seed: int, draws: int) -> tuple[Test, Interval]:
    groups = [np.flatnonzero(first.gold == 1), np.flatnonzero(first.gold != 1)]

    def absolute(predictions: Floats, draws: Indices) -> Floats:
        one, other = np.split(predictions[draws], [len(groups[0])], axis=1)
        return np.abs(effect_sizes(one, other))

    def difference(draws: Indices) -> Floats:
        return absolute(first.predictions, draws) - absolute(second.predictions, draws)

    return paired_bootstrap(difference, len(first.gold), seed, groups, max(RESAMPLES, draws))


ABSOLUTE_EFFECT_SIZE = Metric(
    name="absolute_effect_size",
    recompute=_effects,
    errors=lambda items: np.abs(items.predictions - items.predictions.mean()),
    test=_test_effects,
    higher_is_better=False,
)
"""How far two groups of words differ in their associations; 0 is best. The prediction of an item is
the association of a word; its gold is 1 in the first group, else 0."""
