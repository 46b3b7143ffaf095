"""Fits a scorer of pairs of texts on pairs that people scored."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.api.contrast_pairs import contrast_pairs
from rejoinder.api.trees import fitted_regression
from rejoinder.datasets.graded import read_graded
from rejoinder.datasets.leaks.hashes import EvaluationHashes
from rejoinder.datasets.sts import GradedPairs, pair_keys, read_sts_year, read_stsb
from rejoinder.encoders.layers import Array
from rejoinder.errors import DataMissingError, InputError, require
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.scoring.families import FAMILIES
from rejoinder.inference.scoring.files import (
    FILE,
    Keys,
    ScorerFacts,
    known_families,
    write_scorer,
)
from rejoinder.inference.scoring.opened import Scorer
from rejoinder.inference.scoring.regression import Regression
from rejoinder.inference.scoring.scorer import COVERAGE, PairFeatures
from rejoinder.io.files.claims import claim_output
from rejoinder.io.files.platform import default_workers
from rejoinder.measures import Floats, Indices, pearson_correlation, spearman_correlation
from rejoinder.models.shipped import shipped_model

Stage = Callable[[str, int, int], None]
"""Called with what is done, how many regressions are fitted, and of how many."""

DEFAULT_SETS = ("stsb", "sts")
_LEAKS = ("stsb-dev", "stsb-test", "sts2017")
_LEAST = 200
"""Pairs without which folds and intervals mean nothing."""
_FOLDS = 5
_BINS = 10
"""Groups of pairs of like scores, whose residuals give the intervals."""
_CONTRASTS = "contrasts"
WEIGHTS = {"stsb": 8, _CONTRASTS: 2}
"""How often a pair of a set counts, where not once; chosen with sources of STS held out."""


def _years(data: Path) -> list[GradedPairs]:
    return [read_sts_year(data, year) for year in (12, 13, 14, 15)]


_SETS: Mapping[str, Callable[[Path], list[GradedPairs]]] = {
    "stsb": lambda data: [read_stsb(data, "train")],
    "sts": _years,
    _CONTRASTS: lambda data: [contrast_pairs(data)],
}


@dataclass(frozen=True)
class _Training:
    """Pairs to fit on, without leaks and repetitions."""

    first: list[str]
    second: list[str]
    gold: Floats
    weights: Indices
    """How often each pair counts."""
    constructed: NDArray[np.bool_]
    """Which pairs a rule made and scored, not people."""
    keys: Keys
    counts: Mapping[str, int]
    dropped: int


def fit_scorer(
    out: str | Path,
    *,
    data: str | Path | None = None,
    sets: Sequence[str] = DEFAULT_SETS,
    encoder: SentenceEncoder | None = None,
    families: Sequence[str] | None = None,
    seed: int = 0,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Stage = lambda _what, _done, _total: None,
) -> Scorer:
    """Fits a scorer on pairs with scores from 0 to 5, and writes it.

    Pairs of the dev and test splits of the STS Benchmark and of STS 2017 are left out, and pairs
    that repeat another, in either order. The score is that of random and boosted trees and a
    linear part. Scores of pairs that a fit has not seen calibrate it, and give intervals.

    Args:
        out: The folder to write.
        data: The folder of data sets, which `sets` by name need.
        sets: `stsb` (the training split of the STS Benchmark, whose pairs count eight times), `sts`
            (STS 2012 to 2015), `contrasts` (`api.contrast_pairs`), or a file of pairs as
            `rejoinder finetune --sts` reads it.
        encoder: The model whose embeddings are compared. Default: `rejoinder-base`.
        families: Names of families of features. Default: all.
        seed: Seed of the fit. The same data and seed give the same bytes.
        threads: Number of CPU cores, by default all that the process may use.
        overwrite: Replace what `out` holds.
        progress: Called after each step.

    Returns:
        The scorer. `facts.dev` has its correlations on STS-B dev, if `data` has that.

    Raises:
        InputError: a set can't be read or has too few pairs, or `out` is not empty.
        MissingExtraError: scikit-learn is not installed.
        BusyError, StorageError: `out` can't be written.
    """
    require("eval", "sklearn", "polars")
    folder, names = Path(out), list(FAMILIES) if families is None else list(families)
    inputs = [*sets, *([] if data is None else [data])]
    with claim_output(folder, overwrite=overwrite, inputs=inputs):
        training = _training(None if data is None else Path(data), sets)
        encoder = encoder or SentenceEncoder(shipped_model(), threads=threads)
        features = {name: [*FAMILIES[name].features] for name in names}
        compute = PairFeatures(encoder, known_families(features, FILE), threads)
        regression, unseen = _fitted(
            compute(training.first, training.second), training, seed, threads, progress
        )
        described = encoder.describe()
        facts = ScorerFacts(
            encoder=described["name"],
            encoder_sha256=described["sha256"],
            families=features,
            pairs=training.counts,
            leaks_dropped=training.dropped,
            seed=seed,
            dev=_dev(None if data is None else Path(data), lambda a, b: regression(compute(a, b))),
            files={},
        )
        write_scorer(
            folder, facts, regression, intervals(unseen, training.gold), training.keys,
            overwrite=overwrite,
        )  # fmt: skip
    return Scorer(folder, encoder, threads=threads)


def _training(data: Path | None, sets: Sequence[str]) -> _Training:
    read: dict[str, list[GradedPairs]] = {}
    for name in sets:
        if name in _SETS:
            if data is None:
                raise InputError(f"the set {name!r} needs `data`, the folder of data sets.")
            read[name] = _SETS[name](data)
        elif Path(name).exists():
            read[Path(name).name] = [read_graded(Path(name))]
        else:
            raise InputError(
                f"`sets` {name!r} is neither a set ({', '.join(_SETS)}) nor a file of pairs."
            )
    held_out, known = EvaluationHashes.load(_LEAKS), set[int]()
    first, second, gold, keys, owners = [], [], [], [], list[str]()
    counts, total = dict[str, int](), 0
    for name, parts in read.items():
        counts[name] = 0
        for part in parts:
            leaks = held_out.contains_pairs(pl.Series(part.first), pl.Series(part.second)).tolist()
            for row, key in enumerate(pair_keys(part.first, part.second).tolist()):
                total += 1
                if leaks[row] or key in known:
                    continue
                known.add(key)
                counts[name] += 1
                keys.append(key)
                owners.append(name)
                first.append(part.first[row])
                second.append(part.second[row])
                gold.append(part.gold[row])
    if len(first) < _LEAST:
        raise InputError(
            f"{', '.join(sets)}: {len(first):,} pairs are left without repetitions and those of "
            f"evaluation sets; at least {_LEAST} are needed."
        )
    weights = np.array([WEIGHTS.get(name, 1) for name in owners])
    return _Training(
        first, second, np.array(gold), weights, np.array(owners) == _CONTRASTS,
        np.array(sorted(keys), np.uint64), counts, total - len(first),
    )  # fmt: skip


def _fitted(
    features: Array, training: _Training, seed: int, threads: int | None, progress: Stage
) -> tuple[Regression, Floats]:
    """Returns the calibrated regression, and (N,) scores of pairs by fits that did not see them.

    Pairs that share their first text, by alphabet, are in one fold.
    """
    gold, folds = training.gold, _folds(training, seed)
    unseen = np.zeros(len(gold))

    def fit(rows: Indices, done: int) -> Regression:
        fitted = fitted_regression(
            features[rows], gold[rows], training.weights[rows], seed, threads or default_workers(),
            training.constructed[rows],
        )  # fmt: skip
        progress("fitting", done, _FOLDS + 1)
        return fitted

    for fold in range(_FOLDS):
        held_out = folds == fold
        unseen[held_out] = fit(np.flatnonzero(~held_out), fold + 1)(features[held_out])
    slope, offset = np.polyfit(unseen, gold, 1)
    regression = fit(np.arange(len(gold)), _FOLDS + 1)
    return scaled(regression, float(slope), float(offset)), slope * unseen + offset


def _folds(training: _Training, seed: int) -> Indices:
    texts = [min(pair) for pair in zip(training.first, training.second, strict=True)]
    distinct, groups = np.unique(texts, return_inverse=True)
    fold_of = np.random.default_rng(seed).permutation(len(distinct)) % _FOLDS
    return np.asarray(fold_of[groups])


def scaled(regression: Regression, slope: float, offset: float) -> Regression:
    """Returns a regression whose scores are `slope` times those of another, plus `offset`."""
    return replace(
        regression,
        linear=regression.linear * np.float32(slope),
        values=regression.values * np.float32(slope),
        bias=np.asarray(regression.bias * slope + offset, np.float32),
    )


def intervals(scores: Floats, gold: Floats) -> tuple[Array, Array, Array]:
    """Returns points of the score, and how far below and above them the true score may be.

    The distances are quantiles of the residuals of pairs of like scores, so that `COVERAGE` of the
    true scores lie between.
    """
    order = np.argsort(scores, kind="stable")
    points, low, high = list[np.float32](), list[float](), list[float]()
    for rows in np.array_split(order, _BINS):
        point = np.float32(scores[rows].mean())
        if points and point <= points[-1]:
            continue
        residuals = (gold - scores)[rows]
        points.append(point)
        low.append(min(float(np.quantile(residuals, (1 - COVERAGE) / 2)), 0.0))
        high.append(max(float(np.quantile(residuals, (1 + COVERAGE) / 2)), 0.0))
    found = [np.array(each, np.float32) for each in (points, low, high)]
    return found[0], found[1], found[2]


def _dev(data: Path | None, score: Callable[[list[str], list[str]], Array]) -> dict[str, float]:
    """Returns the correlations on STS-B dev; none if it is not there."""
    if data is None:
        return {}
    try:
        pairs = read_stsb(data, "dev")
    except DataMissingError:
        return {}
    scores = score(pairs.first, pairs.second).astype(np.float64)
    found = {
        "pearson": pearson_correlation(scores, pairs.gold),
        "spearman": spearman_correlation(scores, pairs.gold),
    }
    return {name: round(value, 6) for name, value in found.items() if math.isfinite(value)}
