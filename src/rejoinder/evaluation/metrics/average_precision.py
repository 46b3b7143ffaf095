"""`map`: the mean of the average precision of ranked lists, in percent.

An item is a query, its prediction the average precision of its list from 0 to 1.
"""

from rejoinder.evaluation.metrics.base import Metric, compare_means

METRICS = (
    Metric(
        name="map",
        recompute=lambda items: {"map": 100 * float(items.predictions.mean())},
        errors=lambda items: items.gold - items.predictions,
        test=lambda first, second, seed, draws: compare_means(
            first.predictions, second.predictions, seed, draws, unit=100
        ),
        percent=True,
    ),
)
