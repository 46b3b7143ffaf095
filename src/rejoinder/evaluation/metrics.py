"""Metrics that a task can have as its main score, by name, and the items that they score.

A metric defines everything that depends on a task's main score. Correlations of predictions with
gold are compared by Williams' test, shares of right items by McNemar's test, means by a paired
bootstrap.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation import intervals
from rejoinder.evaluation.responses import CUTOFFS
from rejoinder.measures import (
    Floats,
    Indices,
    ScoringError,
    pearson_correlation,
    ranks,
    row_correlations,
    spearman_correlation,
)
from rejoinder.registry import Registry


@dataclass(frozen=True)
class Items:
    """Predictions and gold of N items. Tests, plots and recomputed scores work on these."""

    ids: Sequence[str]
    """Each item has its own id; `subset:row` puts it into a subset."""
    predictions: Floats
    """(N,) float64."""
    gold: Floats
    """(N,) float64."""
    texts: Sequence[str] = ()
    """The text of each item, for people. Not written to disk; empty for items read from a file."""
    folds: Indices | None = None
    """(N,) the fold that held out each item, if the score is a mean over folds."""


def numbered(
    split: str, predictions: NDArray[Any], gold: NDArray[Any], texts: Sequence[str]
) -> Items:
    """Returns items that are identified by their row, from 0, such as `test:0`."""
    ids = [f"{split}:{row}" for row in range(len(predictions))]
    return Items(ids, predictions.astype(np.float64), gold.astype(np.float64), texts)


def joined(*columns: Sequence[str]) -> list[str]:
    """Returns what a person reads for each row of text columns, such as `a cat | a dog`."""
    return [" | ".join(row) for row in zip(*columns, strict=True)]


def subsets_of(ids: Sequence[str]) -> dict[str, Indices]:
    """Returns the indices of the items of each subset: the part of an id before the last colon.

    >>> {name: rows.tolist() for name, rows in subsets_of(["a:0", "b:0", "a:1"]).items()}
    {'a': [0, 2], 'b': [1]}
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(ids):
        rows.setdefault(name.rpartition(":")[0], []).append(row)
    return {subset: np.array(chosen) for subset, chosen in rows.items()}


INTERVAL_RESAMPLES = 2_000
"""Bootstrap draws for an interval, if the p-value comes from another test."""


@dataclass(frozen=True)
class Metric:
    """A main score: how it is computed from items, shown, and compared."""

    name: str
    """The key of the score in `Result.scores`."""
    recompute: Callable[[Items], Mapping[str, float]]
    """Returns the scores that are computed from the items, including the main score.

    A results file with different scores is refused.
    """
    errors: Callable[[Items], Floats]
    """Returns (N,) distances of predictions from right; 0 is right. `--worst` sorts by them."""
    test: Callable[[Items, Items, int, int], intervals.Tested]
    """Tests the difference of two encoders on the same items in the same order.

    The last arguments are a seed, and the least number of bootstrap draws. Returns the test
    and the 95 % interval of first minus second, in the unit of the score.
    """
    percent: bool = False
    """Whether the score goes from 0 to 100 instead of 0 to 1."""
    not_percent: tuple[str, ...] = ()
    """Other scores of the result that are not percentages: names or patterns with `*`."""
    higher_is_better: bool = True
    rounding: Mapping[str, float] = field(default_factory=dict)
    """The largest rounding error of a stored value, by name of score."""

    def in_percent(self, score: str) -> bool:
        """Returns whether a score of a result with this main score is a percentage."""
        return self.percent and not any(fnmatchcase(score, part) for part in self.not_percent)


@dataclass(frozen=True)
class MetricPattern:
    """Main scores whose names contain a number or another part, such as `P@N`."""

    name: str
    """The name shown in messages, such as `P@N`."""
    pattern: str
    """A regular expression that matches the complete name."""
    build: Callable[[re.Match[str]], Metric]
    """Returns the metric of a matching name."""


def compare_means(
    first: Floats, second: Floats, seed: int, draws: int, *, unit: float = 1.0
) -> intervals.Tested:
    """Tests the difference of two scores that are means over items, by a paired bootstrap.

    `first` and `second` are (N,) values of two encoders for the same items, whose mean times `unit`
    is the score. There are 10,000 draws, or `draws` if that is more.
    """
    return _bootstrapped(first - second, seed, max(intervals.PAIRED_RESAMPLES, draws), unit)


def compare_correct(
    first: NDArray[np.bool_], second: NDArray[np.bool_], seed: int, *, percent: bool
) -> intervals.Tested:
    """Tests the difference of two shares of right items, by McNemar's test.

    `first` and `second` are (N,) bool: whether each encoder is right. With `percent`, scores go
    from 0 to 100. `seed` seeds the draws of the interval.
    """
    unit = 100.0 if percent else 1.0
    change = unit * first.astype(np.float64) - unit * second.astype(np.float64)
    return intervals.mcnemar(first, second), _bootstrapped(change, seed, INTERVAL_RESAMPLES)[1]


def _bootstrapped(change: Floats, seed: int, draws: int, unit: float = 1.0) -> intervals.Tested:
    def difference(rows: Indices) -> Floats:
        return np.asarray(unit * change[rows].mean(axis=1))

    return intervals.paired_bootstrap(difference, len(change), seed, resamples=draws)


def correlations(x: Floats, gold: Floats) -> dict[str, float]:
    """Returns Pearson's r and Spearman's rho of (N,) predictions with gold.

    Raises:
        ScoringError: a value is not finite, or one side is constant.
    """
    return {"pearson": pearson_correlation(x, gold), "spearman": spearman_correlation(x, gold)}


def rescaled(values: Floats) -> Floats:
    """Returns (N,) values stretched to the scale of gold: the smallest becomes 0, the largest 5.

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
    """Returns three scores over subsets: mean, weighted mean, and all items as one set."""
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
    """Returns distances of ranks, as similarities have another scale than gold."""
    return np.abs(ranks(items.predictions) - ranks(items.gold))


def _ranked(items: Items) -> Items:
    return replace(items, predictions=ranks(items.predictions), gold=ranks(items.gold))


def _correlation(
    name: str,
    recompute: Callable[[Items], Mapping[str, float]],
    groups: Callable[[Items], list[Indices]],
) -> Metric:
    """Returns the metric for the mean of Pearson's r over groups of items, weighted by size."""
    return Metric(name, recompute, _rank_errors, partial(_test, groups))


def _test(
    groups_of: Callable[[Items], list[Indices]], first: Items, second: Items, seed: int, draws: int
) -> intervals.Tested:
    """Tests one correlation by Williams' test, or a mean of several by a paired bootstrap."""
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
    test, interval = intervals.paired_bootstrap(difference, count, seed, groups, draws)
    if len(groups) == 1:
        rows = groups[0]
        test = intervals.williams(
            _bounded_correlation(a[rows], gold[rows]),
            _bounded_correlation(b[rows], gold[rows]),
            _bounded_correlation(a[rows], b[rows]),
            len(rows),
        )
    return test, interval


def _bounded_correlation(x: Floats, y: Floats) -> float:
    """Returns Pearson's r within [-1, 1]; for equal arrays, rounding can exceed 1 slightly."""
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
SPEARMAN = Metric(
    "spearman",
    PEARSON.recompute,
    _rank_errors,
    lambda first, second, seed, draws: _test(_whole, _ranked(first), _ranked(second), seed, draws),
)
PEARSON_TRAINED = _correlation("pearson_trained", _recompute_trained, _whole)
PEARSON_WEIGHTED_MEAN = _correlation("pearson_weighted_mean", _recompute_subsets, _subsets)
PEARSON_TRACK = MetricPattern("pearson_trackN", r"pearson_(track\d[ab]?)", _track)


_ROUNDED = 0.005
"""SentEval's accuracies and F1 are rounded to two digits."""


def f1_score(predictions: Floats, gold: Floats) -> float:
    """Returns F1 of class 1 in percent; 0 if class 1 is neither gold nor predicted."""
    both = int(((predictions == 1) & (gold == 1)).sum())
    either = int((predictions == 1).sum() + (gold == 1).sum())
    return 100 * 2 * both / either if either else 0.0


def _accuracy_of(items: Items) -> dict[str, float]:
    right = items.predictions == items.gold
    accuracy = 100 * float(right.mean())
    if items.folds is not None:
        folds = items.folds
        means = [round(100 * float(right[folds == fold].mean()), 2) for fold in np.unique(folds)]
        accuracy = float(np.mean(means))
    return {"accuracy": accuracy, "f1": f1_score(items.predictions, items.gold)}


def _test_accuracy(first: Items, second: Items, seed: int, draws: int) -> intervals.Tested:
    """Tests by item, or by the means of subsets if there are several: their items share wording."""
    one, other = (items.predictions == items.gold for items in (first, second))
    subsets = subsets_of(first.ids).values()
    if len(subsets) == 1:
        return compare_correct(one, other, seed, percent=True)
    left, right = (np.array([each[rows].mean() for rows in subsets]) for each in (one, other))
    return compare_means(left, right, seed, draws, unit=100)


ACCURACY = Metric(
    name="accuracy",
    recompute=_accuracy_of,
    errors=lambda items: np.asarray(items.predictions != items.gold, np.float64),
    test=_test_accuracy,
    percent=True,
    not_percent=("share", "similarity_*"),
    rounding={"accuracy": _ROUNDED, "f1": _ROUNDED},
)
"""The share of items with the right class, in percent."""


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


def _mean(
    name: str,
    values: Callable[[Items], Floats],
    errors: Callable[[Items], Floats],
    unit: float = 1.0,
    *,
    percent: bool = True,
) -> Metric:
    """Returns the metric for the mean of (N,) values times `unit`: percentages, or else errors."""
    return Metric(
        name,
        lambda items: {name: unit * float(values(items).mean())},
        errors,
        lambda one, two, seed, draws: compare_means(
            values(one), values(two), seed, draws, unit=unit
        ),
        percent=percent,
        higher_is_better=percent,
    )


def _lacking(items: Items) -> Floats:
    return items.gold - items.predictions


MEAN_AVERAGE_PRECISION = _mean("map", lambda items: items.predictions, _lacking, 100)
"""The mean of the average precision of ranked lists, in percent. An item is a query, its prediction
the average precision of its list from 0 to 1."""


def _kind_means(items: Items) -> dict[str, float]:
    means = [items.predictions[rows].mean() for rows in _subsets(items)]
    return {"ndcg@10": float(np.mean(means))}


def _test_kinds(first: Items, second: Items, seed: int, draws: int) -> intervals.Tested:
    kinds = _subsets(first)
    change = first.predictions - second.predictions
    for rows in kinds:
        change[rows] /= len(rows) * len(kinds)

    def difference(draws: Indices) -> Floats:
        return np.asarray(change[draws].sum(axis=1))

    return intervals.paired_bootstrap(
        difference, len(change), seed, kinds, max(intervals.PAIRED_RESAMPLES, draws)
    )


NDCG = Metric("ndcg@10", _kind_means, _lacking, _test_kinds)
"""The NDCG of the first ten, from 0 to 1: the mean over the means of all kinds of questions. An
item is a question in the subset of its kind, its prediction the NDCG of its list."""


def _f_of_links(items: Items) -> Floats:
    """Returns (N,) what each item adds to F, times N."""
    scale = 200 * len(items.ids) / (len(items.ids) + float(items.gold.sum()))
    return scale * items.predictions


LINKS = _mean("f_of_links", _f_of_links, lambda items: 1 - items.predictions)
"""F of links between messages, from 0 to 100. An item is a message, its gold the number of messages
that it answers, or 1; its prediction is 1 if its single predicted link is right, else 0."""


def _distances(items: Items) -> Floats:
    return np.abs(items.predictions - items.gold)


MEAN_ABSOLUTE_ERROR = _mean("mean_absolute_error", _distances, _distances, percent=False)
"""The mean distance of predictions from gold, on the scale of gold."""


def effect_sizes(first: Floats, second: Floats) -> Floats:
    """Returns the difference of two groups' means, in standard deviations of both together.

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


def _test_effects(first: Items, second: Items, seed: int, draws: int) -> intervals.Tested:
    groups = [np.flatnonzero(first.gold == 1), np.flatnonzero(first.gold != 1)]

    def absolute(predictions: Floats, draws: Indices) -> Floats:
        one, other = np.split(predictions[draws], [len(groups[0])], axis=1)
        return np.abs(effect_sizes(one, other))

    def difference(draws: Indices) -> Floats:
        return absolute(first.predictions, draws) - absolute(second.predictions, draws)

    return intervals.paired_bootstrap(
        difference, len(first.gold), seed, groups, max(intervals.PAIRED_RESAMPLES, draws)
    )


ABSOLUTE_EFFECT_SIZE = Metric(
    name="absolute_effect_size",
    recompute=_effects,
    errors=lambda items: np.abs(items.predictions - items.predictions.mean()),
    test=_test_effects,
    higher_is_better=False,
)
"""How far two groups of words differ in their associations; 0 is best. The prediction of an item is
the association of a word; its gold is 1 in the first group, else 0."""


_HERE: Sequence[Metric | MetricPattern] = (
    ACCURACY,
    PRECISION,
    RECALL,
    MEAN_AVERAGE_PRECISION,
    NDCG,
    LINKS,
    MEAN_ABSOLUTE_ERROR,
    ABSOLUTE_EFFECT_SIZE,
    PEARSON,
    SPEARMAN,
    PEARSON_TRAINED,
    PEARSON_WEIGHTED_MEAN,
    PEARSON_TRACK,
)
METRICS: Registry[Metric | MetricPattern] = Registry(
    "metric",
    {
        **{metric.name: metric for metric in _HERE},
        "average_precision": "rejoinder.evaluation.resampled:AVERAGE_PRECISION",
        "v_measure": "rejoinder.evaluation.resampled:V_MEASURE",
        "kept": "rejoinder.evaluation.resampled:KEPT",
    },
)
"""A new metric needs a line here, or a call of `register_metric`."""


def register_metric(metric: Metric | MetricPattern) -> None:
    """Registers a metric, so that results can have it as their main score.

    Raises:
        InputError: another metric has this name.
    """
    if find_metric(metric.name) is not None:
        raise InputError(f"the metric {metric.name!r} is registered already; give it another name.")
    METRICS.register(metric.name, metric)


def find_metric(score: str) -> Metric | None:
    """Returns the metric of a main score, or None if no metric has that name."""
    if score in METRICS and isinstance(exact := METRICS[score], Metric):
        return exact
    for entry in METRICS.values():
        if isinstance(entry, MetricPattern) and (match := re.fullmatch(entry.pattern, score)):
            return entry.build(match)
    return None


def metric_of(score: str) -> Metric:
    """Returns the metric of a main score.

    Raises:
        InputError: no metric of this name is registered.
    """
    if (metric := find_metric(score)) is None:
        known = nearest(score, METRICS)
        raise InputError(f"{score!r} is not a registered metric ({known}); see register_metric.")
    return metric
