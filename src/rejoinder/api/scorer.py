"""Fits a scorer of pairs of texts on pairs that people scored.

It also makes pairs with nearly the same words but another meaning, which are rare in graded pairs.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.api.trees import fitted_regression
from rejoinder.datasets.catalogue import read_bytes
from rejoinder.datasets.groups import read_graded
from rejoinder.datasets.leaks import EvaluationHashes
from rejoinder.datasets.semeval import GradedPairs, pair_keys, read_sts_year, read_stsb
from rejoinder.encoders.layers import Array
from rejoinder.errors import DataMissingError, InputError, require
from rejoinder.evaluation.tasks.contrasts import made_contrasts, read_contrasts
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.claims import claim_output
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.system import default_workers
from rejoinder.measures import Floats, Indices, pearson_correlation, spearman_correlation
from rejoinder.models.find import shipped_model
from rejoinder.scoring import scorer
from rejoinder.scoring.batch import NUMBERS, lexicon
from rejoinder.scoring.families import FAMILIES

TRANSLATIONS = "paraphrases/tatoeba_pivot.jsonl"
"""File of groups of sentences; the first sentence of a group is changed."""
SCORE = 0.5
"""The score of a sentence and its changed version."""
MOST = 300
"""Pairs of each kind."""
_WORDS = range(4, 15)
_NEGATED = (
    (r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should)n't\b", r"\1"),
    (r"\bcan't\b", "can"),
    (r" not\b", ""),
    (r"\bnever ", ""),
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|will|has|have|had|should|would|could|must|am)\b(?!n't)"
)
_PERSON = re.compile(r"(I|You|We|They) [a-z]+\b")
_COUNTS = NUMBERS[2:]
"""Without `one`, which is more often a pronoun."""
_NUMBER = re.compile(rf"\b(\d+|{'|'.join(_COUNTS)})\b")
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{2,}")
_SIDE = (
    r"(?:(?:[Tt]he|[Aa]|[Mm]y|[Hh]is|[Hh]er) [a-z]+|"
    r"(?!There|It|That|This|What|Who|How|Why|He|She|We|You|They|If|No|Not)[A-Z][a-z]+)"
)
_VERB = r"(?!is|are|was|were|and|or|of|in|at|on|to|from|for|than)[a-z]+"
_ORDER = re.compile(
    rf"({_SIDE}) ({_VERB}(?: (?:at|on|to|for|with|after|by))?) ({_SIDE})([.!]| .*)$"
)

Change = Callable[[str, Random], str | None]
"""Returns a changed sentence, or None where the change does not apply."""


def contrast_pairs(data: Path, seed: int = 0) -> GradedPairs:
    """Returns pairs of a sentence and a copy with another negation, number, name, word or order.

    The same data and seed give the same pairs. Sentences of the tasks `contrasts` are left out.

    Raises:
        DataMissingError: `data` has no file of groups of sentences.
    """
    content = read_bytes(data / TRANSLATIONS)
    held_out = {text for items in (read_contrasts(), made_contrasts())
                for _, *texts in items.frame.iter_rows() for text in texts}  # fmt: skip
    firsts = (json.loads(line)["sentences"][0] for line in content.splitlines())
    texts = [text for text in firsts if len(text.split()) in _WORDS and text not in held_out]
    draw = Random(seed)  # noqa: S311 (no secret)
    draw.shuffle(texts)
    names = sorted({name for text in texts for name in _NAME.findall(text)})
    changes = _changes(names)
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in changes}
    for text in texts:
        for kind, change in changes.items():
            other = change(text, draw) if len(found[kind]) < MOST else None
            if other not in (None, text):
                found[kind].append((text, other or ""))
    kinds = [kind for kind, pairs in found.items() for _ in pairs]
    pairs = [pair for each in found.values() for pair in each]
    return GradedPairs(
        "train", "official", [first for first, _ in pairs], [second for _, second in pairs],
        np.full(len(pairs), SCORE), kinds, sha256_of(content), list(map(str, range(len(pairs)))),
        kinds,
    )  # fmt: skip


def _changes(names: list[str]) -> Mapping[str, Change]:
    def name(text: str, draw: Random) -> str | None:
        return _replaced(_NAME, text, lambda old: draw.choice([n for n in names if n != old]))

    return {"negation": negated, "numbers": renumbered, "names": name,
            "opposites": opposite, "order": exchanged}  # fmt: skip


def negated(text: str, draw: Random) -> str | None:
    """Returns a sentence with a negation added or removed.

    >>> negated("He is not here.", Random(0)), negated("I like it.", Random(0))
    ('He is here.', "I don't like it.")
    """
    for pattern, other in _NEGATED:
        if re.search(pattern, text):
            return re.sub(pattern, other, text, count=1)
    if _AUXILIARY.search(text):
        return _replaced(_AUXILIARY, text, lambda old: old + draw.choice((" not", " never")))
    if match := _PERSON.match(text):
        return f"{match[1]} don't{text[len(match[1]) :]}"
    return None


def renumbered(text: str, draw: Random) -> str | None:
    """Returns a sentence with another number."""

    def other(old: str) -> str:
        if old.isdigit():
            return str(int(old) + draw.choice((2, 3, 5, 10, 40)))
        return draw.choice([word for word in _COUNTS if word != old])

    return _replaced(_NUMBER, text, other)


def opposite(text: str, draw: Random) -> str | None:
    """Returns a sentence with one word replaced by its opposite."""
    parts = re.findall(r"\w+|\W+", text)
    places = [place for place, word in enumerate(parts) if lexicon().opposites(word)]
    if not places:
        return None
    place = draw.choice(places)
    parts[place] = draw.choice(lexicon().opposites(parts[place]))
    return "".join(parts)


def exchanged(text: str, _draw: Random) -> str | None:
    """Returns a sentence with subject and object exchanged.

    >>> exchanged("The dog bit my friend.", Random(0))
    'My friend bit the dog.'
    """
    match = _ORDER.match(text)
    if match is None:
        return None
    first, verb, second, rest = match.groups()
    lower = first if " " not in first else first[0].lower() + first[1:]
    return f"{second[0].upper()}{second[1:]} {verb} {lower}{rest}"


def _replaced(pattern: re.Pattern[str], text: str, other: Callable[[str], str]) -> str | None:
    match = pattern.search(text)
    return match and text[: match.start()] + other(match[0]) + text[match.end() :]


Stage = Callable[[str, int, int], None]
"""Called with the current stage, the number of fitted regressions, and their total."""

DEFAULT_SETS = ("stsb", "sts")
_LEAKS = ("stsb-dev", "stsb-test", "sts2017")
_LEAST = 200
"""Fewest pairs for meaningful folds and intervals."""
_FOLDS = 5
_BINS = 10
"""Number of groups of pairs with similar scores, whose residuals give the intervals."""
_CONTRASTS = "contrasts"
WEIGHTS = {"stsb": 8, _CONTRASTS: 2}
"""How often a pair of a set counts, if not once; chosen with sources of STS held out."""


_SETS: Mapping[str, Callable[[Path], list[GradedPairs]]] = {
    "stsb": lambda data: [read_stsb(data, "train")],
    "sts": lambda data: [read_sts_year(data, year) for year in (12, 13, 14, 15)],
    _CONTRASTS: lambda data: [contrast_pairs(data)],
}


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs to fit on, without leaks and duplicates."""

    first: list[str]
    second: list[str]
    gold: Floats
    weights: Indices
    """How often each pair counts."""
    constructed: NDArray[np.bool_]
    """Whether a pair was made and scored by a rule, not by people."""
    sources: NDArray[np.str_]
    """The name of the source of each pair."""
    keys: scorer.Keys
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
) -> scorer.Scorer:
    """Fits a scorer on pairs with scores from 0 to 5, and writes it.

    Pairs of the dev and test splits of the STS Benchmark and of STS 2017 are left out, and so are
    duplicates, in either order. The score combines random trees, boosted trees and a linear part.
    Held-out sources calibrate the scores and give the intervals; with fewer than five sources,
    held-out pairs do.

    Args:
        out: The folder to write.
        data: The folder of data sets, required for `sets` given by name.
        sets: `stsb` (the training split of the STS Benchmark, whose pairs count eight times), `sts`
            (STS 2012 to 2015), `contrasts` (`api.scorer.contrast_pairs`), or a file of pairs in
            the format of `rejoinder finetune --sts`.
        encoder: The model whose embeddings are compared. Default: `rejoinder-base`.
        families: Names of families of features. Default: all.
        seed: Seed of the fit. The same data and seed give the same bytes.
        threads: Number of CPU cores, by default all that the process may use.
        overwrite: Replace what `out` holds.
        progress: Called after each step.

    Returns:
        The scorer. `facts.dev` has its correlations on STS-B dev, if `data` contains that split.

    Raises:
        InputError: a set can't be read or has too few pairs, or `out` is not empty.
        MissingExtraError: scikit-learn is not installed.
        BusyError, StorageError: `out` can't be written.
    """
    require("eval", "sklearn", "polars")
    folder, names = Path(out), list(FAMILIES) if families is None else list(families)
    inputs = [*sets, *([] if data is None else [data])]
    with claim_output(folder, overwrite=overwrite, inputs=inputs):
        training = training_pairs(None if data is None else Path(data), sets)
        encoder = encoder or SentenceEncoder(shipped_model(), threads=threads)
        features = {name: [*FAMILIES[name].features] for name in names}
        known = scorer.known_families(features, scorer.FILE)
        compute = scorer.PairFeatures(encoder, known, threads)
        rows = compute(training.first, training.second)
        regression, interval = _fitted(rows, training, seed, threads, progress)
        described = encoder.describe()
        facts = scorer.ScorerFacts(
            encoder=described["name"],
            encoder_sha256=described["sha256"],
            families=features,
            pairs=training.counts,
            leaks_dropped=training.dropped,
            seed=seed,
            dev=_dev(None if data is None else Path(data), lambda a, b: regression(compute(a, b))),
            files={},
        )
        scorer.write_scorer(folder, facts, regression, interval, training.keys, overwrite=overwrite)
    return scorer.Scorer(folder, encoder, threads=threads)


def training_pairs(data: Path | None, sets: Sequence[str]) -> TrainingPairs:
    """Returns the pairs of the sets that `fit_scorer` takes.

    Raises:
        InputError: a set can't be read, or too few pairs are left.
    """
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
    held_out, total = EvaluationHashes.load(_LEAKS), 0
    kept: dict[int, tuple[Any, ...]] = {}  # the first of equal pairs
    for name, parts in read.items():
        for part in parts:
            leaked = held_out.contains_pairs(pl.Series(part.first), pl.Series(part.second))
            keys = pair_keys(part.first, part.second)
            rows = zip(part.first, part.second, part.gold, part.sources, strict=True)
            for key, is_leak, row in zip(keys.tolist(), leaked.tolist(), rows, strict=True):
                if not is_leak:
                    kept.setdefault(key, (name, *row))
            total += len(keys)
    if len(kept) < _LEAST:
        raise InputError(
            f"{', '.join(sets)}: {len(kept):,} pairs are left without duplicates and leaks; "
            f"{_LEAST} are needed."
        )
    owners, first, second, gold, sources = map(list, zip(*kept.values(), strict=True))
    weights = np.array([WEIGHTS.get(name, 1) for name in owners])
    counts = {name: owners.count(name) for name in read}
    return TrainingPairs(
        first, second, np.array(gold), weights, np.array(owners) == _CONTRASTS, np.array(sources),
        np.array(sorted(kept), np.uint64), counts, total - len(kept),
    )  # fmt: skip


def _fitted(
    features: Array, training: TrainingPairs, seed: int, threads: int | None, progress: Stage
) -> tuple[scorer.Regression, scorer.Interval]:
    """Returns the regression and its intervals, calibrated by fits that did not see the pairs."""
    gold, folds = training.gold, _folds(training, seed)
    unseen = np.zeros(len(gold))

    def fit(rows: Indices, done: int) -> scorer.Regression:
        fitted = fitted_regression(
            features[rows], gold[rows], training.weights[rows], seed, threads or default_workers(),
            training.constructed[rows], training.sources[rows],
        )  # fmt: skip
        progress("fitting", done, _FOLDS + 1)
        return fitted

    for fold in range(_FOLDS):
        held_out = folds == fold
        unseen[held_out] = fit(np.flatnonzero(~held_out), fold + 1)(features[held_out])
    regression = fit(np.arange(len(gold)), _FOLDS + 1)
    left_out = folds >= 0
    known = unseen[left_out], gold[left_out], training.sources[left_out]
    slope, offset, interval = calibration(*known)
    return scaled(regression, slope, offset), interval


def _folds(training: TrainingPairs, seed: int) -> Indices:
    """Returns (N,) the fold that holds out each pair; -1 for constructed pairs among others.

    A fold consists of complete sources if there are enough. Otherwise, pairs with the same
    alphabetically first text are in the same fold.
    """
    rated = np.flatnonzero(~training.constructed | training.constructed.all())
    folds = np.full(len(training.gold), -1)
    distinct, owner = np.unique(training.sources[rated], return_inverse=True)
    if len(distinct) >= _FOLDS:
        dealt, sizes = np.empty(len(distinct), np.int64), np.zeros(_FOLDS, np.int64)
        counts = np.bincount(owner)
        for source in np.argsort(-counts, kind="stable"):
            dealt[source] = sizes.argmin()
            sizes[dealt[source]] += counts[source]
    else:
        texts = [min(training.first[row], training.second[row]) for row in rated]
        distinct, owner = np.unique(texts, return_inverse=True)
        dealt = np.random.default_rng(seed).permutation(len(distinct)) % _FOLDS
    folds[rated] = dealt[owner]
    return folds


def calibration(
    unseen: Floats, gold: Floats, sources: NDArray[np.str_]
) -> tuple[float, float, scorer.Interval]:
    """Returns slope and intercept of the gold on (N,) scores, and the intervals after scaling.

    All sources count equally, because a new one may resemble any of them.
    """
    _, owner, counts = np.unique(sources, return_inverse=True, return_counts=True)
    shares = 1 / counts[owner]
    slope, intercept = np.polyfit(unseen, gold, 1, w=np.sqrt(shares))
    interval = intervals(slope * unseen + intercept, gold, shares)
    return float(slope), float(intercept), interval


def scaled(regression: scorer.Regression, slope: float, offset: float) -> scorer.Regression:
    """Returns a regression with its scores multiplied by `slope`, plus `offset`."""
    return replace(
        regression,
        linear=regression.linear * np.float32(slope),
        values=regression.values * np.float32(slope),
        bias=np.asarray(regression.bias * slope + offset, np.float32),
    )


def intervals(scores: Floats, gold: Floats, shares: Floats) -> scorer.Interval:
    """Returns points on the scale of scores, and how far below and above the true score may be.

    The distances are quantiles of the residuals of pairs with similar scores, so that `COVERAGE` of
    the true scores lie between them. `shares` (N,) are the weights of the pairs.
    """
    scores = np.clip(scores, 0, scorer.HIGHEST)
    order = np.argsort(scores, kind="stable")
    points, low, high = list[np.float32](), list[float](), list[float]()
    for rows in np.array_split(order, _BINS):
        point = np.float32(np.average(scores[rows], weights=shares[rows]))
        if points and point <= points[-1]:
            continue
        ends = _quantiles((gold - scores)[rows], shares[rows])
        points.append(point)
        low.append(min(ends[0], 0.0))
        high.append(max(ends[1], 0.0))
    found = [np.array(each, np.float32) for each in (points, low, high)]
    return found[0], found[1], found[2]


def _quantiles(values: Floats, shares: Floats) -> list[float]:
    """Returns the two values that enclose `COVERAGE` of the shares."""
    order = np.argsort(values)
    reached = np.cumsum(shares[order]) / shares.sum()
    places = np.searchsorted(reached, ((1 - scorer.COVERAGE) / 2, (1 + scorer.COVERAGE) / 2))
    return values[order][places.clip(max=len(values) - 1)].tolist()  # type: ignore[no-any-return]


def _dev(data: Path | None, score: Callable[[list[str], list[str]], Array]) -> dict[str, float]:
    """Returns the correlations on STS-B dev; empty if the data is missing."""
    if data is None:
        return {}
    try:
        pairs = read_stsb(data, "dev")
    except DataMissingError:
        return {}
    scores = score(pairs.first, pairs.second).astype(np.float64)
    found = {"pearson": pearson_correlation, "spearman": spearman_correlation}
    values = {name: measure(scores, pairs.gold) for name, measure in found.items()}
    return {name: round(value, 6) for name, value in values.items() if math.isfinite(value)}
