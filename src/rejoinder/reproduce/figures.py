"""Figure 8 of the paper as SVG."""

from collections.abc import Mapping, Sequence

from rejoinder.evaluation.report.plots import COLOURS, new_figure, svg_of
from rejoinder.evaluation.results import Result

_LINES = (
    ("dev", "all", "o-"),
    ("test", "all", "s-"),
    ("dev", "captions", "^--"),
    ("test", "captions", "v--"),
)
"""Split, genre and marker of each line. Markers tell the lines apart without colours."""


def figure8(curve: Mapping[float, Sequence[Result]], model: str) -> str:
    """Plots Pearson's r on STS-B against the share of the NLI training data, as SVG.

    `curve` holds the results on STS-B by the share, 0 to 1. `model` is named in the title.
    """
    figure, axes = new_figure(5.5, 4)
    shares = sorted(curve)
    for (split, genre, marker), colour in zip(_LINES, COLOURS, strict=False):
        values = [_pearson(curve[share], split, genre) for share in shares]
        percent = [100 * share for share in shares]
        axes.plot(percent, values, marker, color=colour, label=f"{genre}, {split}")
    axes.set_xlabel("share of the NLI training data, %")
    axes.set_ylabel("Pearson's r on the STS Benchmark")
    axes.set_title(model, fontsize=9)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return svg_of(figure)


def _pearson(results: Sequence[Result], split: str, genre: str) -> float:
    [result] = [result for result in results if result.split == split]
    scores = result.scores if genre == "all" else result.groups[f"main-{genre}"].scores
    return float(scores["pearson"])
