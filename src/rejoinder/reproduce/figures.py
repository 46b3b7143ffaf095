"""Figures 7 and 8 of the paper as SVG."""

from collections.abc import Mapping, Sequence

import polars as pl

from rejoinder.evaluation.report.plots import (
    COLOURS,
    new_figure,
    predicted_against_gold,
    svg_of,
)
from rejoinder.evaluation.results import Result

_LINES = (
    ("dev", "all", "o-"),
    ("test", "all", "s-"),
    ("dev", "captions", "^--"),
    ("test", "captions", "v--"),
)
"""Split, part and mark: told apart without colours too."""


def figure7(items: pl.DataFrame, model: str) -> str:
    """Predicted similarity against gold on STS-B test."""
    scores, gold = items["prediction"].to_numpy(), items["gold"].to_numpy()
    return predicted_against_gold(f"STS Benchmark, test: {model}", scores, gold)


def figure8(curve: Mapping[float, Sequence[Result]], model: str) -> str:
    """Pearson's r on STS-B against the share of the NLI data."""
    figure, axes = new_figure(5.5, 4)
    shares = sorted(curve)
    for place, (split, part, mark) in enumerate(_LINES):
        values = [_pearson(curve[share], split, part) for share in shares]
        axes.plot(
            [100 * share for share in shares],
            values,
            mark,
            color=COLOURS[place],
            label=f"{part}, {split}",
        )
    axes.set_xlabel("share of the NLI training data, %")
    axes.set_ylabel("Pearson's r on the STS Benchmark")
    axes.set_title(model, fontsize=9)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return svg_of(figure)


def _pearson(results: Sequence[Result], split: str, part: str) -> float:
    [result] = [one for one in results if one.split == split]
    scores = result.scores if part == "all" else result.groups[f"main-{part}"].scores
    return float(scores["pearson"])
