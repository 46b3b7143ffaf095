"""`stsb/*`, `sts12/cosine` … `sts17/cosine`: similarities of graded pairs, without training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from rejoinder.datasets.sts import (
    SUBSETS,
    GradedPairs,
    pair_keys,
    read_sts_2017,
    read_sts_year,
    read_stsb,
    without_repeats,
)
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.calls import call, numbers_of
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval, grouped_correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.correlation import correlations, rescaled, share_within_one
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats, Indices, angular_similarity
from rejoinder.protocols import Encodes, TellsFittedPairs

_DIFFICULT = (115, 84, 184, 14, 78, 195)
"""Lines of the pairs of Table 12 in Cer et al. 2017, in the file of track 5."""

MEASURES: Mapping[str, Callable[[Floats], Floats]] = {
    "angular": angular_similarity,
    "cosine": lambda cosine: cosine,
}
"""Functions of cosines that give similarities, by name."""


def score_stsb(encoder: Encodes, pairs: GradedPairs, *, seed: int = 0) -> list[Result]:
    """Returns a result for each measure: its correlations with gold, in all and by genre.

    Both measures give the same order: their Spearman correlations differ only in ties that rounding
    breaks. `seed` seeds the intervals.

    Raises:
        InputError: an embedding is not usable, or a correlation is not defined.
    """
    return _graded(Embedder(encoder), pairs, [f"stsb/{name}" for name in MEASURES], seed)


def _graded(
    embedder: Embedder, pairs: GradedPairs, tasks: Sequence[str], seed: int
) -> list[Result]:
    """Returns a result for each task, `NAME/MEASURE`. The measures share their embeddings."""
    similarity, notes = _similarity(embedder, pairs, f"{tasks[0]} on {pairs.split}")
    return [_measured(similarity, notes, pairs, task, seed) for task in tasks]


def _similarity(embedder: Embedder, pairs: GradedPairs, where: str) -> tuple[Floats, list[str]]:
    """Returns the cosine of each pair, and notes, such as how many the encoder was fitted on."""
    similarity, notes = embedder.similarity(pairs.first, pairs.second, where)
    return similarity, [*_fitted_notes(embedder, pairs, where), *notes]


def _fitted_notes(embedder: Embedder, pairs: GradedPairs, where: str) -> list[str]:
    encoder = embedder.encoder
    if not isinstance(encoder, TellsFittedPairs):
        return []
    who = embedder.who(where, "_fitted_pairs")
    fitted = numbers_of(call(encoder._fitted_pairs, who=who), who, "(M,) keys of pairs are")
    if not len(fitted):
        return []
    shared = int(np.isin(pair_keys(pairs.first, pairs.second), fitted).sum())
    return [
        f"{shared:,} of {len(pairs):,} pairs are among those that the encoder was adapted on "
        "(either order, letters and digits alone)"
    ]


def _measured(
    similarity: Floats, notes: Sequence[str], pairs: GradedPairs, task: str, seed: int
) -> Result:
    """Returns the correlations over all pairs and by genre. The main score is `pearson`."""
    values = MEASURES[task.split("/")[1]](np.clip(similarity, -1, 1))
    return Result(
        task=task,
        split=pairs.split,
        n=len(pairs),
        main="pearson",
        scores={
            **correlations(values, pairs.gold),
            "within_1_rescaled": share_within_one(values, pairs.gold),
        },
        intervals={
            "pearson": correlation_interval(values, pairs.gold, seed),
            "spearman": correlation_interval(values, pairs.gold, seed, ranks=True),
        },
        groups=_groups(values, pairs),
        seed=seed,
        data=_facts(task, pairs),
        notes=(f"the {pairs.form} form of the data", *notes),
        items=_items(values, pairs),
    )


def _subsets(embedder: Embedder, pairs: GradedPairs, task: str, seed: int) -> Result:
    """Returns three scores over subsets: mean, weighted mean, and all pairs as one set."""
    similarity, notes = _similarity(embedder, pairs, task)
    items = _items(similarity, pairs)
    return Result(
        task=task,
        split=pairs.split,
        n=len(pairs),
        main="pearson_weighted_mean",
        scores=metric_of("pearson_weighted_mean").recompute(items),
        intervals={
            "pearson_weighted_mean": grouped_correlation_interval(
                similarity, pairs.gold, list(_rows_of(pairs).values()), seed
            ),
            "pearson_all": correlation_interval(similarity, pairs.gold, seed),
        },
        groups=_groups(similarity, pairs),
        seed=seed,
        data=_facts(task, pairs),
        notes=(
            *row_notes(task.split("/")[0], {pairs.split: len(pairs)}),
            f"the {pairs.form} form of the data",
            *notes,
        ),
        items=items,
    )


def _facts(task: str, pairs: GradedPairs) -> dict[str, str]:
    return {"name": task.split("/")[0], "form": pairs.form, "sha256": pairs.sha256}


def _groups(values: Floats, pairs: GradedPairs) -> dict[str, Group]:
    return {
        genre: Group(len(rows), correlations(values[rows], pairs.gold[rows]))
        for genre, rows in sorted(_rows_of(pairs).items())
    }


def _rows_of(pairs: GradedPairs) -> dict[str, Indices]:
    """Returns the indices of the pairs of each genre."""
    genres = np.array(pairs.genres)
    return {genre: np.flatnonzero(genres == genre) for genre in dict.fromkeys(pairs.genres)}


def _items(values: Floats, pairs: GradedPairs) -> Items:
    return Items(pairs.ids, values, pairs.gold, joined(pairs.first, pairs.second))


def _read_stsb(context: Context, ids: Sequence[str]) -> dict[tuple[str, str], GradedPairs]:
    """Returns the pairs by the name of a data set and split."""
    folder = context.folder("stsb")
    read = {("stsb", split): read_stsb(folder, split, context.form) for split in context.splits}
    if any(task.startswith("stsb-unrepeated/") for task in ids):
        unrepeated = _unrepeated(folder, context.form)
        read |= {("stsb-unrepeated", split): unrepeated[split] for split in context.splits}
    return read


def _run_stsb(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    read = _read_stsb(context, ids)
    whole = [pairs for (name, _), pairs in read.items() if name == "stsb"]
    embedder.prepare("stsb", [text for pairs in whole for text in (*pairs.first, *pairs.second)])
    results = []
    for split in context.splits:
        for name in ("stsb", "stsb-unrepeated"):
            tasks = [task for task in ids if task.startswith(f"{name}/")]
            if tasks:
                results += _graded(embedder, read[name, split], tasks, context.seed)
    return results


def _unrepeated(folder: Path, form: str | None) -> dict[str, GradedPairs]:
    """Returns train, dev and test without pairs that repeat an earlier pair of any split."""
    known: set[frozenset[str]] = set()
    splits, hashes = {}, ""
    for split in ("train", "dev", "test"):
        pairs = without_repeats(read_stsb(folder, split, form), known)
        hashes += pairs.sha256
        # the earlier splits decide which pairs remain
        splits[split] = replace(pairs, sha256=sha256_of(hashes.encode()))
    return splits


def _stsb_hashes(context: Context, ids: Sequence[str]) -> Hashes:
    read = _read_stsb(context, ids)
    return {
        (task, split): read[task.split("/")[0], split].sha256
        for split in context.splits
        for task in ids
    }


def _year_hashes(year: int, context: Context, ids: Sequence[str]) -> Hashes:
    pairs = read_sts_year(context.folder(ids[0]), year, context.form)
    return {(task, pairs.split): pairs.sha256 for task in ids}


def _2017_hashes(context: Context, ids: Sequence[str]) -> Hashes:
    pairs = read_sts_2017(context.folder("sts17"))
    return {(task, "test"): pairs.sha256 for task in ids}


def _run_year(year: int, embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    pairs = read_sts_year(context.folder(ids[0]), year, context.form)
    embedder.prepare(f"sts{year}", [*pairs.first, *pairs.second])
    return [_subsets(embedder, pairs, task, context.seed) for task in ids]


def _run_2017(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    pairs = read_sts_2017(context.folder("sts17"))
    embedder.prepare("sts17", [*pairs.first, *pairs.second])
    similarity, notes = _similarity(embedder, pairs, "sts17")
    scored = {"sts17/cosine": _tracks, "sts17/difficult": _difficult}
    return [scored[task](similarity, notes, pairs, task, context.seed) for task in ids]


def _tracks(
    similarity: Floats, notes: Sequence[str], pairs: GradedPairs, task: str, seed: int
) -> Result:
    """Scores all tracks. "Primary" is ambiguous in the paper, so both means are given."""
    items = _items(similarity, pairs)
    pearson = metric_of("pearson_track5").recompute(items)
    chosen = _rows_of(pairs)["track5"]
    english, gold = similarity[chosen], pairs.gold[chosen]
    five = [pearson[f"pearson_track{track}"] for track in ("1", "2", "3", "4a", "5")]
    return Result(
        task=task,
        split="test",
        n=len(pairs),
        main="pearson_track5",
        scores={
            **pearson,
            "pearson_mean_of_7": float(np.mean(list(pearson.values()))),
            "pearson_mean_of_1_to_5": float(np.mean(five)),
            "within_1_rescaled_track5": share_within_one(english, gold),
        },
        intervals={"pearson_track5": correlation_interval(english, gold, seed)},
        groups=_groups(similarity, pairs),
        seed=seed,
        data=_facts(task, pairs),
        notes=(
            *row_notes("sts17", {"test": len(pairs)}),
            "mean of tracks 1 to 5 with 4a, 4b left out",
            *notes,
        ),
        items=items,
    )


def _difficult(
    similarity: Floats, notes: Sequence[str], pairs: GradedPairs, task: str, seed: int
) -> Result:
    """Scores the six difficult pairs of Cer et al. 2017 on the scale of gold.

    Similarities are rescaled by the smallest and the largest of track 5.
    """
    english = _rows_of(pairs)["track5"]
    if len(english) < max(_DIFFICULT):
        raise DataMissingError(f"{task} needs all 250 pairs of track 5; {len(english)} are there.")
    lines = np.array(_DIFFICULT) - 1
    chosen = english[lines]
    items = Items(
        [pairs.ids[row] for row in chosen],
        rescaled(similarity[english])[lines],
        pairs.gold[chosen],
        joined([pairs.first[row] for row in chosen], [pairs.second[row] for row in chosen]),
    )
    each = zip(_DIFFICULT, items.gold, items.predictions, strict=True)
    listed = ", ".join(f"{line}: {gold:.1f} / {ours:.1f}" for line, gold, ours in each)
    return Result(
        task=task,
        split="test",
        n=len(items.ids),
        main="mean_absolute_error",
        scores=metric_of("mean_absolute_error").recompute(items),
        intervals={},
        groups={},
        seed=seed,
        data=_facts(task, pairs),
        notes=(f"line of track 5: gold / ours from 0 to 5: {listed}", *notes),
        items=items,
    )


FAMILIES = (
    *(
        Family(
            {f"sts{year}/cosine": (f"sts{year}", "sts", "senteval")},
            partial(_run_year, year),
            partial(_year_hashes, year),
            reads=("form",),
        )
        for year in SUBSETS
    ),
    Family(
        {"sts17/cosine": ("sts17", "sts"), "sts17/difficult": ("contrasts",)},
        _run_2017,
        _2017_hashes,
    ),
    Family(
        {
            "stsb/angular": ("stsb",),
            "stsb/cosine": ("stsb", "sts"),
            "stsb-unrepeated/angular": ("stsb-unrepeated",),
            "stsb-unrepeated/cosine": ("stsb-unrepeated",),
        },
        _run_stsb,
        _stsb_hashes,
        reads=("form",),
    ),
)
