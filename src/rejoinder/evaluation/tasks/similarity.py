"""`stsb/*`, `sts12/cosine` … `sts17/cosine`, `sick-r/cosine`: similarities of graded pairs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.datasets.sentence_pairs import SentencePairSet, read_sick
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
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.correlation import correlations, rescaled, share_within_one
from rejoinder.evaluation.notes import row_notes
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks.base import Context, Data, Family
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


_SICK = {"test": ("test",), "all": ("train", "dev", "test")}
"""Splits of SICK by split of the results. Peers publish correlations over all 9,927 pairs, papers
those of test."""

Score = Callable[[str, GradedPairs, Floats, Sequence[str], int], Scored]
"""Scores a task by its pairs, their similarities, notes and a seed."""


def score_stsb(encoder: Encodes, pairs: GradedPairs, *, seed: int = 0) -> Scored:
    """Returns the angular similarities' correlations with gold, in all and by genre.

    `seed` seeds the intervals.

    Raises:
        InputError: an embedding is not usable, or a correlation is not defined.
    """
    similarity, notes = _similarity(Embedder(encoder), pairs, f"stsb on {pairs.split}")
    return _genres("stsb/angular", pairs, similarity, notes, seed)


def _similarity(embedder: Embedder, pairs: GradedPairs, where: str) -> tuple[Floats, list[str]]:
    """Returns the cosine of each pair, and notes, such as how many the encoder was fitted on."""
    similarity, notes = embedder.similarity(pairs.first, pairs.second, where)
    encoder = embedder.encoder
    if isinstance(encoder, TellsFittedPairs):
        who = embedder.who(where, "_fitted_pairs")
        fitted = numbers_of(call(encoder._fitted_pairs, who=who), who, "(M,) keys of pairs are")
        if len(fitted):
            shared = int(np.isin(pair_keys(pairs.first, pairs.second), fitted).sum())
            fact = (
                f"{shared:,} of {len(pairs):,} pairs are among those that the encoder was adapted "
                "on (either order, letters and digits alone)"
            )
            notes = [fact, *notes]
    return similarity, notes


def _correlated(values: Floats, pairs: GradedPairs, seed: int, **facts: Any) -> Scored:
    """Returns the correlations over all pairs, of which `pearson` is the main score."""
    intervals = {
        name: correlation_interval(values, pairs.gold, seed, ranks=name == "spearman")
        for name in ("pearson", "spearman")
    }
    scores = correlations(values, pairs.gold)
    return Scored("pearson", scores, _items(values, pairs), intervals, **facts)


def _genres(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    values = MEASURES[task.split("/")[1]](np.clip(similarity, -1, 1))
    scored = _correlated(
        values,
        pairs,
        seed,
        groups=_groups(values, pairs),
        data=_facts(task, pairs),
        notes=[_form_note(pairs), *notes],
    )
    within = share_within_one(values, pairs.gold)
    return replace(scored, scores={**scored.scores, "within_1_rescaled": within})


def _related(
    _task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    notes = [*row_notes("sick", Counter(pairs.genres)), *notes]
    return _correlated(similarity, pairs, seed, data={"name": "SICK"}, notes=notes)


def _subsets(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Returns three scores over subsets: mean, weighted mean, and all pairs as one set."""
    items, main = _items(similarity, pairs), "pearson_weighted_mean"
    rows = list(_rows_of(pairs).values())
    return Scored(
        main,
        metric_of(main).recompute(items),
        items,
        {
            main: correlation_interval(similarity, pairs.gold, seed, groups=rows),
            "pearson_all": correlation_interval(similarity, pairs.gold, seed),
        },
        _groups(similarity, pairs),
        _facts(task, pairs),
        [
            *row_notes(task.split("/")[0], {pairs.split: len(pairs)}),
            _form_note(pairs),
            *notes,
        ],
    )


def _facts(task: str, pairs: GradedPairs) -> dict[str, str]:
    return {"name": task.split("/")[0], "form": pairs.form}


def _form_note(pairs: GradedPairs) -> str:
    return f"the {pairs.form} form of the data"


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


def _tracks(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Scores all tracks. "Primary" is ambiguous in the paper, so both means are given."""
    items, main = _items(similarity, pairs), "pearson_track5"
    pearson = metric_of(main).recompute(items)
    chosen = _rows_of(pairs)["track5"]
    english, gold = similarity[chosen], pairs.gold[chosen]
    five = [pearson[f"pearson_track{track}"] for track in ("1", "2", "3", "4a", "5")]
    scores = {
        **pearson,
        "pearson_mean_of_7": float(np.mean(list(pearson.values()))),
        "pearson_mean_of_1_to_5": float(np.mean(five)),
        "within_1_rescaled_track5": share_within_one(english, gold),
    }
    intervals = {main: correlation_interval(english, gold, seed)}
    means = "mean of tracks 1 to 5 with 4a, 4b left out"
    notes = [*row_notes("sts17", {"test": len(pairs)}), means, *notes]
    groups, facts = _groups(similarity, pairs), _facts(task, pairs)
    return Scored(main, scores, items, intervals, groups, facts, notes)


def _difficult(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], _seed: int
) -> Scored:
    """Scores the six difficult pairs of Cer et al. 2017 on the scale of gold.

    Similarities are rescaled by the smallest and the largest of track 5.
    """
    english, main = _rows_of(pairs)["track5"], "mean_absolute_error"
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
    notes = [f"line of track 5: gold / ours from 0 to 5: {listed}", *notes]
    scores = metric_of(main).recompute(items)
    return Scored(main, scores, items, data=_facts(task, pairs), notes=notes)


def _run(
    scores: Mapping[str, Score], embedder: Embedder, context: Context, data: Data
) -> dict[tuple[str, str], Scored]:
    whole = max(data.values(), key=len)  # of several parts, the last holds the others
    embedder.prepare(next(iter(data))[0].split("/")[0], [*whole.first, *whole.second])
    return _scored(scores, embedder, context, data)


def _scored(
    scores: Mapping[str, Score], embedder: Embedder, context: Context, data: Data
) -> dict[tuple[str, str], Scored]:
    """Scores pairs by the functions of their tasks, which share the similarities of a split."""
    found, similarities = {}, {}
    for (task, split), pairs in data.items():
        part = task.split("/")[0], split
        if part not in similarities:
            similarities[part] = _similarity(embedder, pairs, f"{task} on {split}")
        found[task, split] = scores[task](task, pairs, *similarities[part], context.seed)
    return found


def _read(
    read: Callable[[Context], Sequence[GradedPairs]], context: Context, ids: Sequence[str]
) -> Data:
    return {(task, pairs.split): pairs for pairs in read(context) for task in ids}


def _family(
    read: Callable[[Context], Sequence[GradedPairs]],
    scores: Mapping[str, Score],
    groups: Mapping[str, tuple[str, ...]],
    options: tuple[str, ...] = (),
) -> Family:
    return Family(groups, partial(_read, read), partial(_run, scores), options=options)


def sick_pairs(data: SentencePairSet, split: str, parts: Sequence[str]) -> GradedPairs:
    """Returns some splits of SICK as one, whose genres are the splits."""
    chosen = [data.splits[part] for part in parts]
    return GradedPairs(
        split,
        "",
        [text for part in chosen for text in part.first],
        [text for part in chosen for text in part.second],
        np.concatenate([part.scores for part in chosen]),
        [name for name, part in zip(parts, chosen, strict=True) for _ in part.ids],
        data.sha256,
        [name for part in chosen for name in part.ids],
    )


def _sick(context: Context) -> list[GradedPairs]:
    data = read_sick(context.folder("sick"))
    return [sick_pairs(data, split, parts) for split, parts in _SICK.items()]


def _read_stsb(context: Context, ids: Sequence[str]) -> Data:
    folder, form = context.folder("stsb"), context.form
    read = {("stsb", split): read_stsb(folder, split, form) for split in context.splits}
    if any(task.startswith("stsb-unrepeated/") for task in ids):
        for split, pairs in _unrepeated(folder, form).items():
            read["stsb-unrepeated", split] = pairs
    return {
        (task, split): read[task.split("/")[0], split] for split in context.splits for task in ids
    }


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


def _run_stsb(embedder: Embedder, context: Context, data: Data) -> dict[tuple[str, str], Scored]:
    # all pairs, so that no score depends on which other tasks were asked for
    whole = _read_stsb(context, ["stsb/cosine"]).values()
    embedder.prepare("stsb", [text for pairs in whole for text in (*pairs.first, *pairs.second)])
    return _scored(dict.fromkeys((task for task, _ in data), _genres), embedder, context, data)


def _years(year: int) -> Family:
    task = f"sts{year}/cosine"

    def read(context: Context) -> list[GradedPairs]:
        return [read_sts_year(context.folder(task), year, context.form)]

    return _family(read, {task: _subsets}, {task: (f"sts{year}", "sts", "senteval")}, ("form",))


FAMILIES = (
    *map(_years, SUBSETS),
    _family(
        lambda context: [read_sts_2017(context.folder("sts17"))],
        {"sts17/cosine": _tracks, "sts17/difficult": _difficult},
        {"sts17/cosine": ("sts17", "sts"), "sts17/difficult": ("contrasts",)},
    ),
    Family(
        {
            "stsb/angular": ("stsb",),
            "stsb/cosine": ("stsb", "sts"),
            "stsb-unrepeated/angular": ("stsb-unrepeated",),
            "stsb-unrepeated/cosine": ("stsb-unrepeated",),
        },
        _read_stsb,
        _run_stsb,
        options=("form",),
    ),
    _family(_sick, {"sick-r/cosine": _related}, {"sick-r/cosine": ("sick-r",)}),
)
