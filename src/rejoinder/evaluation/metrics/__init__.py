"""The metrics that a task can have as its main score, by name."""

import re

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.metrics.base import Metric, MetricPattern
from rejoinder.registry import Registry

METRICS: Registry[Metric | MetricPattern] = Registry(
    "metric",
    {
        "accuracy": f"{__name__}.shares:ACCURACY",
        "P@N": f"{__name__}.shares:PRECISION",
        "recall_1_t2i": f"{__name__}.shares:RECALL",
        "map": f"{__name__}.shares:MEAN_AVERAGE_PRECISION",
        "mean_absolute_error": f"{__name__}.shares:MEAN_ABSOLUTE_ERROR",
        "absolute_effect_size": f"{__name__}.shares:ABSOLUTE_EFFECT_SIZE",
        "pearson": f"{__name__}.correlation:PEARSON",
        "pearson_trained": f"{__name__}.correlation:PEARSON_TRAINED",
        "pearson_weighted_mean": f"{__name__}.correlation:PEARSON_WEIGHTED_MEAN",
        "pearson_trackN": f"{__name__}.correlation:PEARSON_TRACK",
    },
)
"""A new metric needs a line here, or a call of `register_metric`."""


def register_metric(metric: Metric | MetricPattern) -> None:
    """Makes a metric known, so that results can have it as their main score.

    Raises:
        InputError: another metric has that name.
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
        InputError: no metric of that name is registered.
    """
    metric = find_metric(score)
    if metric is None:
        raise InputError(
            f"{score!r} is not a registered metric ({nearest(score, METRICS)}); a main score "
            "needs one: see register_metric."
        )
    return metric
