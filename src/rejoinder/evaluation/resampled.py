"""Metrics of all items together, tested by resampling items: AP, V-measure, score that remains."""

from collections.abc import Callable

import numpy as np

from rejoinder.evaluation.intervals import Interval, Tested, paired_bootstrap
from rejoinder.evaluation.metrics import Items, Metric, subsets_of
from rejoinder.measures import Floats, Indices, ranks, row_correlations

_DRAWS = 500
"""Number of draws for an interval; each computes the complete score again."""

Value = Callable[[Floats, Floats], float]
"""Scores (R, N) predictions of R runs over the same texts against (N,) gold, from 0 to 100."""


def _columns(items: Items) -> tuple[Floats, Floats]:
    """Returns (R, N) predictions and (N,) gold; each subset of the items is a run."""
    rows = np.stack(list(subsets_of(items.ids).values()))
    return items.predictions[rows], items.gold[rows[0]]


def score_interval(value: Value, items: Items, seed: int) -> Interval:
    """Returns the 95 % interval of a score."""
    predictions, gold = _columns(items)

    def scores(draws: Indices) -> Floats:
        return np.array([value(predictions[:, rows], gold[rows]) for rows in draws])

    return paired_bootstrap(scores, len(gold), seed, resamples=_DRAWS, centred=True)[1]


def _metric(name: str, value: Value, errors: Callable[[Floats, Floats], Floats]) -> Metric:
    """Returns the metric of a score; `errors` takes what `value` takes and returns (R, N)."""

    def test(first: Items, second: Items, seed: int, draws: int) -> Tested:
        (one, gold), (two, _) = _columns(first), _columns(second)

        def difference(draws: Indices) -> Floats:
            changes = ([value(side[:, rows], gold[rows]) for rows in draws] for side in (one, two))
            left, right = map(np.array, changes)
            return np.asarray(left - right)

        most = max(_DRAWS, draws)
        return paired_bootstrap(difference, len(gold), seed, resamples=most, centred=True)

    return Metric(
        name,
        lambda items: {name: value(*_columns(items))},
        lambda items: errors(*_columns(items)).ravel(),
        test,
        percent=True,
        not_percent=("clean", "changed"),
    )


def average_precision(scores: Floats, relevant: Floats) -> float:
    """Returns the area under the precision-recall curve of (1, N) scores; gold 1 is relevant.

    Items with the same score count together.

    >>> average_precision(np.array([[0.9, 0.8, 0.7]]), np.array([1.0, 0.0, 1.0])).__round__(2)
    83.33
    """
    order = np.argsort(-scores[0], kind="stable")
    found = np.cumsum(relevant[order])
    ends = np.flatnonzero(np.append(np.diff(scores[0][order]), 1))
    gained = np.diff(found[ends], prepend=0)
    return 100 * float((gained * found[ends] / (ends + 1)).sum() / max(found[-1], 1))


def _table(clusters: Floats, classes: Floats) -> Floats:
    """Returns the number of items by cluster and class."""
    wide = int(classes.max()) + 1
    cells = clusters.astype(np.int64) * wide + classes.astype(np.int64)
    counts = np.bincount(cells, minlength=(int(clusters.max()) + 1) * wide)
    return counts.reshape(-1, wide).astype(np.float64)


def _entropy(counts: Floats) -> float:
    shares = counts[counts > 0] / counts.sum()
    return -float((shares * np.log(shares)).sum())


def v_measure(clusters: Floats, classes: Floats) -> float:
    """Returns the mean of the V-measures of (R, N) clusters (Rosenberg and Hirschberg 2007).

    >>> v_measure(np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]]), np.array([0.0, 0, 1, 1]))
    50.0
    """
    values = []
    for run in clusters:
        table = _table(run, classes)
        of_clusters, of_classes = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
        shared = of_clusters + of_classes - _entropy(table)
        values.append(2 * shared / (of_clusters + of_classes) if of_clusters + of_classes else 1.0)
    return 100 * float(np.mean(values))


def _others(clusters: Floats, classes: Floats) -> Floats:
    """Returns for each item the share of its cluster that has another class."""
    shares = []
    for run in clusters:
        table = _table(run, classes)
        own = table[run.astype(np.int64), classes.astype(np.int64)]
        shares.append(1 - own / table.sum(axis=1)[run.astype(np.int64)])
    return np.array(shares)


def kept(similarities: Floats, gold: Floats) -> float:
    """Returns Pearson's r with gold of changed texts, in percent of r of clean texts.

    `similarities` are (2, N), clean first. Returns 0 if the clean ones do not agree with gold.
    """
    clean, changed = row_correlations(similarities, np.stack([gold, gold]), constant=0.0)
    return 100 * float(changed / clean) if clean > 0 else 0.0


AVERAGE_PRECISION = _metric(
    "average_precision",
    average_precision,
    lambda scores, gold: np.abs(ranks(scores[0]) - ranks(gold))[None],
)
V_MEASURE = _metric("v_measure", v_measure, _others)
KEPT = _metric("kept", kept, lambda both, _gold: np.abs(both - both[0]))
