"""Means over items, compared by a paired bootstrap."""

import numpy as np

from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, compare_means
from rejoinder.measures import Floats

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
