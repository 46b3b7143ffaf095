"""The metrics that a task can have as its main score. Each module defines some in `METRICS`."""

import re
from importlib import import_module

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.metrics.base import Metric, MetricPattern

_MODULES = (
    "absolute_error",
    "accuracy",
    "average_precision",
    "correlation",
    "effect",
    "precision",
    "recall",
)
"""Modules of this package; a new metric needs a line here, or a call of `register_metric`."""

_registered: dict[str, Metric | MetricPattern] = {}


def register_metric(metric: Metric | MetricPattern) -> None:
    """Makes a metric known, so that results can have it as their main score.

    Raises:
        InputError: another metric has that name.
    """
    if metric.name in _registered or find_metric(metric.name) is not None:
        raise InputError(f"the metric {metric.name!r} is registered already; give it another name.")
    _registered[metric.name] = metric


def find_metric(score: str) -> Metric | None:
    """Returns the metric of a main score, or None if no metric has that name."""
    exact = _registered.get(score)
    if isinstance(exact, Metric):
        return exact
    for entry in _registered.values():
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
            f"{score!r} is no registered metric ({nearest(score, _registered)}); a main score "
            "needs one: see register_metric."
        )
    return metric


for _module in _MODULES:
    for _metric in import_module(f"{__name__}.{_module}").METRICS:
        register_metric(_metric)
