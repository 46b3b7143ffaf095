"""Scores computed anew from what was predicted for each item: a file's scores must follow."""

import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from rejoinder.errors import InputError
from rejoinder.evaluation.results import subsets_of
from rejoinder.measures.arrays import Floats
from rejoinder.measures.correlation import ScoringError, pearson_correlation
from rejoinder.measures.ranks import spearman_correlation

MAINS = ("accuracy", "map", "pearson", "pearson_trained", "pearson_weighted_mean",
         "pearson_track…", "recall_1_t2i", "P@N", "P@N of K")  # fmt: skip
"""The main scores that there are."""
_ROUNDED = 0.005
"""SentEval's accuracies are rounded to two digits."""
_EXACT = 1e-9
_CUTOFF = re.compile(r"P@(\d+)( of \d+)?")


def cutoff_of(score: str) -> int | None:
    """N of a score `P@N` or `P@N of K`; none: it is no such score."""
    found = _CUTOFF.fullmatch(score)
    return int(found[1]) if found else None


def is_main(score: str) -> bool:
    """Whether a score is one of the main scores, for which there is a test."""
    track = re.fullmatch(r"pearson_track\d[ab]?", score) is not None
    return score in MAINS[:5] or score == "recall_1_t2i" or track or cutoff_of(score) is not None


def check_scores(scores: Mapping[str, float], main: str, items: pl.DataFrame, where: str) -> None:
    """Compare scores with those that items give, as far as they follow from these.

    Args:
        scores: by name.
        main: the name of the main score.
        items: columns id, prediction, gold, and where scores are means over folds, fold.
        where: how the sentence begins.

    Raises:
        InputError: a score is another, or the items give none.
    """
    try:
        found = recomputed(main, list(scores), items)
    except ScoringError as error:
        raise InputError(f"{where}: the saved predictions give no {main}: {error}") from None
    for name, value in found.items():
        allowed = _EXACT * max(1.0, abs(value))
        if name in ("accuracy", "f1"):
            allowed += _ROUNDED
        if name in scores and abs(scores[name] - value) > allowed:
            raise InputError(
                f"{where}: {name} is {scores[name]}, and the saved predictions give {value:.6g}; "
                "the file was changed after it was written. Evaluate again."
            )


def recomputed(main: str, names: list[str], items: pl.DataFrame) -> dict[str, float]:
    """The scores that follow from items, by name; `names` are those that are asked for."""
    x, gold = items["prediction"].to_numpy(), items["gold"].to_numpy()
    if main == "accuracy":
        return _accuracies(x, gold, items)
    if main == "map":
        return {"map": 100 * float(x.mean())}
    if main == "recall_1_t2i":
        return {f"recall_{n}_t2i": 100 * float((x < n).mean()) for n in (1, 5, 10)}
    if cutoff_of(main) is not None:
        cutoffs = {name: cutoff_of(name) for name in names}
        return {name: float((x <= n).mean()) for name, n in cutoffs.items() if n is not None}
    if main == "pearson_trained":
        return {
            "pearson_trained": pearson_correlation(x, gold),
            "spearman_trained": spearman_correlation(x, gold),
            "mse": float(np.mean((x - gold) ** 2)),
        }
    if main == "pearson":
        return _correlations(x, gold)
    subsets = subsets_of(items["id"].to_list())
    parts = {name: _correlations(x[rows], gold[rows]) for name, rows in subsets.items()}
    if main.startswith("pearson_track"):
        return {f"pearson_{name}": scores["pearson"] for name, scores in parts.items()}
    sizes = [len(rows) for rows in subsets.values()]
    found = {f"{kind}_all": value for kind, value in _correlations(x, gold).items()}
    for kind in ("pearson", "spearman"):
        values = [scores[kind] for scores in parts.values()]
        found[f"{kind}_mean"] = float(np.mean(values))
        found[f"{kind}_weighted_mean"] = float(np.average(values, weights=sizes))
    return found


def _accuracies(x: Floats, gold: Floats, items: pl.DataFrame) -> dict[str, float]:
    right = x == gold
    found = {"accuracy": 100 * float(right.mean())}
    if "fold" in items.columns:
        folds = items["fold"].to_numpy()
        means = [round(100 * float(right[folds == fold].mean()), 2) for fold in np.unique(folds)]
        found["accuracy"] = float(np.mean(means))
    either = float((x == 1).sum() + (gold == 1).sum())
    if either:
        found["f1"] = 200 * float(((x == 1) & (gold == 1)).sum()) / either
    return found


def _correlations(x: Floats, gold: Floats) -> dict[str, float]:
    return {"pearson": pearson_correlation(x, gold), "spearman": spearman_correlation(x, gold)}
