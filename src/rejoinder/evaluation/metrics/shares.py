"""Shares of right items: accuracy, P@N and recall, compared by McNemar's test.

Means over items, and differences of the means of two groups, compared by a paired bootstrap.
"""

import re

import numpy as np

from rejoinder.evaluation.intervals import PAIRED_RESAMPLES, Interval, Test, paired_bootstrap
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, MetricPattern, compare_correct, compare_means
from rejoinder.measures import Floats, Indices

_ROUNDED = 0.005
"""SentEval's accuracies and F1 are rounded to two digits."""
CUTOFFS = (1, 3, 10)
"""N of the P@N that a result has."""
USUAL_CANDIDATES = 100
"""K of the field's P@N; any other number of candidates is part of the name."""


def f1_score(predictions: Floats, gold: Floats) -> float:
    """Returns F1 of class 1 in percent; 0 if class 1 is neither gold nor predicted."""
    both = int(((predictions == 1) & (gold == 1)).sum())
    either = int((predictions == 1).sum() + (gold == 1).sum())
    return 100 * 2 * both / either if either else 0.0


def _recompute_accuracy(items: Items) -> dict[str, float]:
    right = items.predictions == items.gold
    accuracy = 100 * float(right.mean())
    if items.folds is not None:
        folds = items.folds
        means = [round(100 * float(right[folds == fold].mean()), 2) for fold in np.unique(folds)]
        accuracy = float(np.mean(means))
    return {"accuracy": accuracy, "f1": f1_score(items.predictions, items.gold)}


ACCURACY = Metric(
    name="accuracy",
    recompute=_recompute_accuracy,
    errors=lambda items: np.asarray(items.predictions != items.gold, np.float64),
    test=lambda first, second, seed, _draws: compare_correct(
        first.predictions == first.gold, second.predictions == second.gold, seed, percent=True
    ),
    percent=True,
    not_percent=("share", "similarity_*"),
    rounding={"accuracy": _ROUNDED, "f1": _ROUNDED},
)
"""The share of items with the right class, in percent."""


def precision_name(n: int, candidates: int) -> str:
    """Returns the name of a score.

    >>> precision_name(1, 100), precision_name(3, 40)
    ('P@1', 'P@3 of 40')
    """
    return f"P@{n}" if candidates == USUAL_CANDIDATES else f"P@{n} of {candidates}"


def _precision(match: re.Match[str]) -> Metric:
    main, n = match[0], int(match[1])
    cutoffs = {main: n, **{f"P@{cutoff}{match[2] or ''}": cutoff for cutoff in CUTOFFS}}
    return Metric(
        name=main,
        recompute=lambda items: {
            name: float((items.predictions <= cutoff).mean()) for name, cutoff in cutoffs.items()
        },
        errors=lambda items: items.predictions - 1,
        test=lambda first, second, seed, _draws: compare_correct(
            first.predictions <= n, second.predictions <= n, seed, percent=False
        ),
    )


PRECISION = MetricPattern("P@N", r"P@(\d+)( of \d+)?", _precision)
"""How often the true response is among the first N of K candidates, from 0 to 1: `P@N of K`, or
`P@N` for 100 candidates. The prediction of an item is the rank of its true response, from 1."""

RECALL = Metric(
    name="recall_1_t2i",
    recompute=lambda items: {
        f"recall_{n}_t2i": 100 * float((items.predictions < n).mean()) for n in (1, 5, 10)
    },
    errors=lambda items: items.predictions,
    test=lambda first, second, seed, _draws: compare_correct(
        first.predictions < 1, second.predictions < 1, seed, percent=True
    ),
    percent=True,
    not_percent=("median_rank_*",),
)
"""How often the image of a caption is ranked first, in percent. The prediction of an item is the
number of images before the right one."""


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

    return paired_bootstrap(difference, len(first.gold), seed, groups, max(PAIRED_RESAMPLES, draws))


ABSOLUTE_EFFECT_SIZE = Metric(
    name="absolute_effect_size",
    recompute=_effects,
    errors=lambda items: np.abs(items.predictions - items.predictions.mean()),
    test=_test_effects,
    higher_is_better=False,
)
"""How far two groups of words differ in their associations; 0 is best. The prediction of an item is
the association of a word; its gold is 1 in the first group, else 0."""
