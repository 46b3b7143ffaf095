"""Plots as SVG: main scores as bars with intervals, and predictions against gold."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from rejoinder.errors import require
from rejoinder.evaluation.report.tables import names
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.variants import variants, with_label
from rejoinder.measures import Floats

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The palette of Okabe and Ito: distinct for colour-blind readers and in grey."""


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Returns a matplotlib figure, whose size is in inches, and its axes: an array if several.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require("report", "matplotlib")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "rejoinder"  # makes the ids in an SVG reproducible
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def svg_of(figure: Any) -> str:
    """Returns a figure as SVG. The same figure gives the same text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def bars(runs: Sequence[Sequence[Result]]) -> str:
    """Plots the main score of every task: a bar per encoder, with its 95 % interval.

    All scores are scaled to 0 to 1. `runs` are the results of each encoder.
    """
    labels = variants(result for run in runs for result in run)
    keys = list(labels)
    figure, axes = new_figure(8, 1.2 + 0.22 * len(keys) * (len(runs) + 0.5))
    for index, (name, run) in enumerate(zip(names(runs), runs, strict=True)):
        by_key = {result.key: result for result in run}
        rows = [row for row, key in enumerate(keys) if key in by_key]
        values, errors = [], []
        for row in rows:
            result = by_key[keys[row]]
            unit = 100 if result.in_percent else 1
            value = result.scores[result.main] / unit
            low, high = result.intervals.get(result.main, (value * unit, value * unit))
            values.append(value)
            errors.append((max(value - low / unit, 0), max(high / unit - value, 0)))
        heights = np.array(rows) + (index - (len(runs) - 1) / 2) * 0.8 / len(runs)
        axes.barh(
            heights, values, height=0.8 / len(runs), label=name,
            color=COLOURS[index % len(COLOURS)], xerr=np.array(errors).T, ecolor="#333333",
        )  # fmt: skip
    axes.set_yticks(range(len(keys)), [with_label(*key[:2], labels[key]) for key in keys])
    axes.set_ylim(len(keys) - 0.5, -0.5)
    axes.set_xlabel("main score, 0 to 1 (accuracy and MAP as shares), with 95 % intervals")
    figure.legend(loc="outside upper right", ncols=3)
    return svg_of(figure)


def predicted_against_gold(title: str, predictions: Floats, gold: Floats) -> str:
    """Plots (N,) predicted similarities against gold, 0 to 5, and the line of least squares."""
    figure, axes = new_figure(4.5, 4)
    axes.scatter(gold, predictions, s=6, alpha=0.35, color=COLOURS[0], linewidths=0)
    slope, intercept = np.polyfit(gold, predictions, 1)
    ends = np.array([gold.min(), gold.max()])
    axes.plot(ends, intercept + slope * ends, color=COLOURS[5])
    axes.set_xlabel("gold, 0 (unrelated) to 5 (the same)")
    axes.set_ylabel("predicted")
    axes.set_title(title, fontsize=9)
    return svg_of(figure)
