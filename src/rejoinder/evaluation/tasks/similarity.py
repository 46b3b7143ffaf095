"""`stsb/*`, `sts12/cosine` … `sts17/cosine`: similarities against graded pairs, nothing trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.sts import GradedPairs, pair_keys, read_stsb, without_repeats
from rejoinder.datasets.sts_years import SUBSETS, read_sts_2017, read_sts_year
from rejoinder.evaluation.calls import call, numbers_of
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval, grouped_correlation_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.correlation import correlations, rescaled, share_within_one
from rejoinder.evaluation.published_rows import row_notes
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes
from rejoinder.files.hashed import sha256_of
from rejoinder.measures.arrays import Floats
from rejoinder.measures.similarity import angular_similarity
from rejoinder.protocols import Encodes, TellsFittedPairs

_DIFFICULT = (115, 84, 184, 14, 78, 195)

MEASURES: Mapping[str, Callable[[Floats], Floats]] = {
    "angular": angular_similarity,
    "cosine": lambda cosine: cosine,
}


def score_stsb(encoder: Encodes, pairs: GradedPairs, *, seed: int = 0) -> list[Result]:
    """Pearson and Spearman of each measure with the gold scores, over all and per genre.

    Both measures rank alike: their Spearman correlations differ by ties that rounding breaks.

    Raises:
        InputError: an embedding is not usable, or a correlation is not defined.
    """
    embedder = Embedder(encoder)
    return _graded(embedder, pairs, [f"stsb/{name}" for name in MEASURES], seed)


def _graded(
    embedder: Embedder, pairs: GradedPairs, tasks: Sequence[str], seed: int
) -> list[Result]:
    """A result a task, named by what it is scored on and the measure; the measures share work."""
    where = f"{tasks[0]} on {pairs.split}"
    similarity, notes = _similarity(embedder, pairs, where)
    return [_measured(similarity, notes, pairs, task, seed) for task in tasks]


def _similarity(embedder: Embedder, pairs: GradedPairs, where: str) -> tuple[Floats, list[str]]:
    """The similarity of each pair, and notes: on how many of them the encoder was fitted."""
    similarity, notes = embedder.similarity(pairs.first, pairs.second, where)
    return similarity, [*_shared(embedder, pairs, where), *notes]


def _shared(embedder: Embedder, pairs: GradedPairs, where: str) -> list[str]:
    encoder = embedder.encoder
    if not isinstance(encoder, TellsFittedPairs):
        return []
    who = embedder.who(where, "fitted_pairs")
    fitted = numbers_of(call(encoder.fitted_pairs, who=who), who, "(M,) keys of pairs are")
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
    """One score over all pairs, `pearson`, and the genres apart."""
    name, measure = task.split("/")
    values = MEASURES[measure](np.clip(similarity, -1, 1))
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
        data={"name": name, "form": pairs.form, "sha256": pairs.sha256},
        notes=(f"the {pairs.form} form of the data", *notes),
        items=_items(values, pairs),
    )


def _subsets(embedder: Embedder, pairs: GradedPairs, task: str, seed: int) -> Result:
    """Three scores over subsets, none of which is another: mean, weighted mean, and all in one."""
    similarity, notes = _similarity(embedder, pairs, task)
    groups = _groups(similarity, pairs)
    sizes = np.array([group.n for group in groups.values()], np.float64)
    scores = {}
    for name, score in correlations(similarity, pairs.gold).items():
        values = np.array([group.scores[name] for group in groups.values()])
        scores[f"{name}_mean"] = float(values.mean())
        scores[f"{name}_weighted_mean"] = float(np.average(values, weights=sizes))
        scores[f"{name}_all"] = score
    return Result(
        task=task,
        split=pairs.split,
        n=len(pairs),
        main="pearson_weighted_mean",
        scores=scores,
        intervals={
            "pearson_weighted_mean": grouped_correlation_interval(
                similarity, pairs.gold, list(_rows_of(pairs).values()), seed
            ),
            "pearson_all": correlation_interval(similarity, pairs.gold, seed),
        },
        groups=groups,
        seed=seed,
        data={"name": task.split("/")[0], "form": pairs.form, "sha256": pairs.sha256},
        notes=(
            *row_notes(task.split("/")[0], {pairs.split: len(pairs)}),
            f"the {pairs.form} form of the data",
            *notes,
        ),
        items=_items(similarity, pairs),
    )


def _groups(values: Floats, pairs: GradedPairs) -> dict[str, Group]:
    return {
        genre: Group(len(rows), correlations(values[rows], pairs.gold[rows]))
        for genre, rows in sorted(_rows_of(pairs).items())
    }


def _rows_of(pairs: GradedPairs) -> dict[str, NDArray[np.int64]]:
    """Rows of each genre."""
    genres = np.array(pairs.genres)
    return {genre: np.flatnonzero(genres == genre) for genre in dict.fromkeys(pairs.genres)}


def _items(values: Floats, pairs: GradedPairs) -> Items:
    texts = [f"{a} | {b}" for a, b in zip(pairs.first, pairs.second, strict=True)]
    return Items(pairs.ids, values, pairs.gold, texts)


def _run_stsb(embedder: Embedder, context: Context, ids: Sequence[str]) -> list[Result]:
    folder = context.folder("stsb")
    whole = {split: read_stsb(folder, split, context.form) for split in context.splits}
    every = [text for pairs in whole.values() for text in (*pairs.first, *pairs.second)]
    embedder.prepare("stsb", every)
    plain = [task for task in ids if task.startswith("stsb/")]
    other = [task for task in ids if task not in plain]
    unrepeated = _unrepeated(folder, context.form) if other else {}
    results = []
    for split, pairs in whole.items():
        if plain:
            results += _graded(embedder, pairs, plain, context.seed)
        if other:
            results += _graded(embedder, unrepeated[split], other, context.seed)
    return results


def _unrepeated(folder: Path, form: str | None) -> dict[str, GradedPairs]:
    """The splits without pairs that an earlier one, of train, dev, test, or itself has already."""
    known: set[frozenset[str]] = set()
    found, hashes = {}, ""
    for split in ("train", "dev", "test"):
        pairs = without_repeats(read_stsb(folder, split, form), known)
        hashes += pairs.sha256
        # the earlier splits decide which pairs are left
        found[split] = replace(pairs, sha256=sha256_of(hashes.encode()))
    return found


def _stsb_hashes(context: Context, ids: Sequence[str]) -> Hashes:
    folder = context.folder("stsb")
    found = {}
    unrepeated = any(not task.startswith("stsb/") for task in ids)
    without = _unrepeated(folder, context.form) if unrepeated else {}
    for split in context.splits:
        plain = read_stsb(folder, split, context.form)
        for task in ids:
            pairs = plain if task.startswith("stsb/") else without[split]
            found[task, split] = pairs.sha256
    return found


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
    """All tracks; "primary" is ambiguous in the paper, so both means are given, and named."""
    pairs = read_sts_2017(context.folder("sts17"))
    embedder.prepare("sts17", [*pairs.first, *pairs.second])
    similarity, notes = _similarity(embedder, pairs, "sts17")
    groups = _groups(similarity, pairs)
    pearson = {name: group.scores["pearson"] for name, group in groups.items()}
    chosen = np.array(pairs.genres) == "track5"
    english = similarity[chosen]
    five = [pearson[f"track{track}"] for track in ("1", "2", "3", "4a", "5")]
    return [
        Result(
            task=task,
            split="test",
            n=len(pairs),
            main="pearson_track5",
            scores={
                **{f"pearson_{name}": value for name, value in pearson.items()},
                "pearson_mean_of_7": float(np.mean(list(pearson.values()))),
                "pearson_mean_of_1_to_5": float(np.mean(five)),
                "within_1_rescaled_track5": share_within_one(english, pairs.gold[chosen]),
            },
            intervals={
                "pearson_track5": correlation_interval(english, pairs.gold[chosen], context.seed)
            },
            groups=groups,
            seed=context.seed,
            data={"name": "sts17", "form": pairs.form, "sha256": pairs.sha256},
            notes=(
                *row_notes("sts17", {"test": len(pairs)}),
                "mean of tracks 1 to 5 with 4a, 4b left out",
                _difficult(english, pairs.gold[chosen]),
                *notes,
            ),
            items=_items(similarity, pairs),
        )
        for task in ids
    ]


def _difficult(english: Floats, gold: Floats) -> str:
    """The six pairs of Table 12 in Cer et al. 2017, by their line in the file of track 5."""
    ours = rescaled(english)
    pairs = [f"{line}: {gold[line - 1]:.1f} / {ours[line - 1]:.1f}" for line in _DIFFICULT]
    return f"difficult pairs of track 5, line: gold / ours from 0 to 5: {', '.join(pairs)}"


FAMILIES = (
    *(
        Family(
            {f"sts{year}/cosine": (f"sts{year}", "sts", "senteval")},
            partial(_run_year, year),
            partial(_year_hashes, year),
        )
        for year in SUBSETS
    ),
    Family({"sts17/cosine": ("sts17", "sts")}, _run_2017, _2017_hashes),
    Family(
        {
            "stsb/angular": ("stsb",),
            "stsb/cosine": ("stsb", "sts"),
            "stsb-unrepeated/angular": ("stsb-unrepeated",),
            "stsb-unrepeated/cosine": ("stsb-unrepeated",),
        },
        _run_stsb,
        _stsb_hashes,
    ),
)
