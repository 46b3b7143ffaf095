"""`absolute_effect_size`: how far two groups of words differ in their associations. 0 is best.

The prediction of an item is the association of a word; its gold is 1 in the first group, else 0.
"""

import numpy as np

from rejoinder.evaluation.intervals import Interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric
from rejoinder.evaluation.significance import RESAMPLES, Test, paired_bootstrap
from rejoinder.measures import Floats, Indices

_EQUAL = 1e-6
"""Standard deviations below this are rounding errors of float32 embeddings."""


def effect_sizes(first: Floats, second: Floats) -> Floats:
    """Returns the difference of the means of two groups in standard deviations of both together.

    `first` (..., N) and `second` (..., M) are associations; the result has their other axes. It is
    0 where all associations are equal. Caliskan et al. 2017, eq. for d.
    """
    spread = np.concatenate([first, second], axis=-1).std(axis=-1, ddof=1)
    difference = first.mean(axis=-1) - second.mean(axis=-1)
    return np.where(spread > _EQUAL, difference / np.maximum(spread, _EQUAL), 0.0)


def _recompute(items: Items) -> dict[str, float]:
    of_first = items.gold == 1
    size = float(effect_sizes(items.predictions[of_first], items.predictions[~of_first]))
    return {"absolute_effect_size": abs(size), "effect_size": size}


def _test(first: Items, second: Items, seed: int, draws: int) -> tuple[Test, Interval]:
    groups = [np.flatnonzero(first.gold == 1), np.flatnonzero(first.gold != 1)]

    def absolute(predictions: Floats, draws: Indices) -> Floats:
        one, other = np.split(predictions[draws], [len(groups[0])], axis=1)
        return np.abs(effect_sizes(one, other))

    def difference(draws: Indices) -> Floats:
        return absolute(first.predictions, draws) - absolute(second.predictions, draws)

    return paired_bootstrap(difference, len(first.gold), seed, groups, max(RESAMPLES, draws))


ABSOLUTE_EFFECT_SIZE = Metric(
    name="absolute_effect_size",
    recompute=_recompute,
    errors=lambda items: np.abs(items.predictions - items.predictions.mean()),
    test=_test,
    higher_is_better=False,
)
