"""`mean_absolute_error`: the mean distance of predictions from gold, on the scale of gold."""

import numpy as np

from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, compare_means
from rejoinder.measures import Floats


def _errors(items: Items) -> Floats:
    return np.abs(items.predictions - items.gold)


METRICS = (
    Metric(
        name="mean_absolute_error",
        recompute=lambda items: {"mean_absolute_error": float(_errors(items).mean())},
        errors=_errors,
        test=lambda first, second, seed, draws: compare_means(
            _errors(first), _errors(second), seed, draws
        ),
        higher_is_better=False,
    ),
)
