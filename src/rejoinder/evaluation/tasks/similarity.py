"""Similarities of graded pairs: the STS Benchmark, STS 2012 to 2017, SICK-R, and your own pairs.

`stsb/*` and `stsb-unrepeated/*` have angular similarities or cosines, in all and by genre; the
others have cosines.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.datasets.labelled import SentencePairSet, read_sick
from rejoinder.datasets.semeval import (
    SUBSETS,
    GradedPairs,
    pair_keys,
    read_sts_2017,
    read_sts_year,
    read_stsb,
    without_repeats,
)
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.encoding import Embedder, call, numbers_of
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.metrics import (
    Items,
    correlations,
    joined,
    metric_of,
    rescaled,
    share_within_one,
)
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.run import row_notes
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats, Indices, angular_similarity
from rejoinder.protocols import Encodes, TellsFittedPairs

MEASURES: Mapping[str, Callable[[Floats], Floats]] = {
    "angular": angular_similarity,
    "cosine": lambda cosine: cosine,
}
"""Functions of cosines that give similarities, by name."""

_DIFFICULT = (115, 84, 184, 14, 78, 195)
"""Lines of the pairs of Table 12 in Cer et al. 2017, in the file of track 5."""
_SICK = {"test": ("test",), "all": ("train", "dev", "test")}
"""Splits of SICK by split of the results. Peers publish correlations over all 9,927 pairs, papers
those of test."""

Score = Callable[[str, GradedPairs, Floats, Sequence[str], int], Scored]
"""Scores a task by its pairs, their similarities, notes and a seed."""


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs to score, and the texts that an encoder is prepared on: those of all splits."""

    pairs: GradedPairs
    texts: Sequence[str]

    @property
    def sha256(self) -> str:
        """Hash of the pairs."""
        return self.pairs.sha256


def run(
    scores: Mapping[str, Score],
    embedder: Embedder,
    context: Context,
    part: Part,
    data: PreparedPairs,
) -> Scored:
    """Scores a task by its function among `scores`."""
    task, split = part
    embedder.prepare(task.split("/")[0].removesuffix("-unrepeated"), data.texts)
    similarity, notes = _similarity(embedder, data.pairs, f"{task} on {split}")
    return scores[task](task, data.pairs, similarity, notes, context.seed)


def texts_of(pairs: GradedPairs) -> list[str]:
    """Returns the first sentences of pairs, then the second ones."""
    return [*pairs.first, *pairs.second]


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
        keys = call(encoder._fitted_pairs, who=who)
        fitted = numbers_of(keys, (None,), who, "(M,) keys of pairs are")
        if len(fitted):
            shared = int(np.isin(pair_keys(pairs.first, pairs.second), fitted).sum())
            fact = (
                f"{shared:,} of {len(pairs):,} pairs are among those that the encoder was adapted "
                "on (either order, letters and digits alone)"
            )
            notes = [fact, *notes]
    return similarity, notes


def correlated(values: Floats, pairs: GradedPairs, seed: int, **facts: Any) -> Scored:
    """Returns the correlations over all pairs, of which `pearson` is the main score."""
    intervals = {
        name: correlation_interval(values, pairs.gold, seed, ranks=name == "spearman")
        for name in ("pearson", "spearman")
    }
    scores = correlations(values, pairs.gold)
    return Scored("pearson", scores, items_of(values, pairs), intervals, **facts)


def _genres(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    values = MEASURES[task.split("/")[1]](np.clip(similarity, -1, 1))
    scored = correlated(
        values,
        pairs,
        seed,
        groups=groups_of(values, pairs),
        data=facts_of(task, pairs),
        notes=[form_note(pairs), *notes],
    )
    within = share_within_one(values, pairs.gold)
    return replace(scored, scores={**scored.scores, "within_1_rescaled": within})


def _yours(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    return correlated(similarity, pairs, seed, data={"name": task.split("/")[0]}, notes=notes)


def facts_of(task: str, pairs: GradedPairs) -> dict[str, str]:
    """Returns the name and the form of the data, for a result."""
    return {"name": task.split("/")[0], "form": pairs.form}


def form_note(pairs: GradedPairs) -> str:
    """Returns a note on the form of the data."""
    return f"the {pairs.form} form of the data"


def groups_of(values: Floats, pairs: GradedPairs) -> dict[str, Group]:
    """Returns the correlations of each genre."""
    return {
        genre: Group(len(rows), correlations(values[rows], pairs.gold[rows]))
        for genre, rows in sorted(rows_of(pairs).items())
    }


def rows_of(pairs: GradedPairs) -> dict[str, Indices]:
    """Returns the indices of the pairs of each genre."""
    genres = np.array(pairs.genres)
    return {genre: np.flatnonzero(genres == genre) for genre in dict.fromkeys(pairs.genres)}


def items_of(values: Floats, pairs: GradedPairs) -> Items:
    """Returns the (N,) predicted `values` of pairs as items."""
    return Items(pairs.ids, values, pairs.gold, joined(pairs.first, pairs.second))


def _read(context: Context, ids: Sequence[str]) -> Data:
    folder, form = context.folder("stsb"), context.form
    whole = {split: read_stsb(folder, split, form) for split in context.splits}
    fewer = _unrepeated(folder, form) if any("unrepeated" in task for task in ids) else whole
    # all pairs, so that no score depends on which other tasks were asked for
    texts = [text for pairs in whole.values() for text in texts_of(pairs)]
    return {
        (task, split): PreparedPairs((fewer if "unrepeated" in task else whole)[split], texts)
        for split in context.splits
        for task in ids
    }


def _read_graded(context: Context, ids: Sequence[str]) -> Data:
    if context.graded is None:
        raise DataMissingError("the task graded needs pairs; name their file with `data`.")
    pairs = context.graded()
    return {(task, pairs.split): PreparedPairs(pairs, texts_of(pairs)) for task in ids}


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


_GROUPS = {
    "stsb/angular": ("stsb",),
    "stsb/cosine": ("stsb", "sts"),
    "stsb-unrepeated/angular": ("stsb-unrepeated",),
    "stsb-unrepeated/cosine": ("stsb-unrepeated",),
}
_GRADED = {"graded/cosine": ("graded",)}


def _related(
    _task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    notes = [*row_notes("sick", Counter(pairs.genres)), *notes]
    return correlated(similarity, pairs, seed, data={"name": "SICK"}, notes=notes)


def _subsets(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Returns three scores over subsets: mean, weighted mean, and all pairs as one set."""
    items, main = items_of(similarity, pairs), "pearson_weighted_mean"
    rows = list(rows_of(pairs).values())
    return Scored(
        main,
        metric_of(main).recompute(items),
        items,
        {
            main: correlation_interval(similarity, pairs.gold, seed, groups=rows),
            "pearson_all": correlation_interval(similarity, pairs.gold, seed),
        },
        groups_of(similarity, pairs),
        facts_of(task, pairs),
        [
            *row_notes(task.split("/")[0], {pairs.split: len(pairs)}),
            form_note(pairs),
            *notes,
        ],
    )


def _tracks(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], seed: int
) -> Scored:
    """Scores all tracks. "Primary" is ambiguous in the paper, so both means are given."""
    items, main = items_of(similarity, pairs), "pearson_track5"
    pearson = metric_of(main).recompute(items)
    chosen = rows_of(pairs)["track5"]
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
    groups, facts = groups_of(similarity, pairs), facts_of(task, pairs)
    return Scored(main, scores, items, intervals, groups, facts, notes)


def _difficult(
    task: str, pairs: GradedPairs, similarity: Floats, notes: Sequence[str], _seed: int
) -> Scored:
    """Scores the six difficult pairs of Cer et al. 2017 on the scale of gold.

    Similarities are rescaled by the smallest and the largest of track 5.
    """
    english, main = rows_of(pairs)["track5"], "mean_absolute_error"
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
    return Scored(main, scores, items, data=facts_of(task, pairs), notes=notes)


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
        ["SICK"] * sum(len(part.ids) for part in chosen),
    )


def _sick(context: Context) -> list[GradedPairs]:
    data = read_sick(context.folder("sick"))
    return [sick_pairs(data, split, parts) for split, parts in _SICK.items()]


def _family(
    read: Callable[[Context], Sequence[GradedPairs]],
    scores: Mapping[str, Score],
    groups: Mapping[str, tuple[str, ...]],
    options: tuple[str, ...] = (),
) -> Family:
    def read_all(context: Context, ids: Sequence[str]) -> Data:
        parts = read(context)
        texts = texts_of(parts[-1])  # the last holds the others
        return {(task, one.split): PreparedPairs(one, texts) for one in parts for task in ids}

    return Family(groups, read_all, partial(run, scores), options=options)


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
    _family(_sick, {"sick-r/cosine": _related}, {"sick-r/cosine": ("sick-r",)}),
    Family(_GROUPS, _read, partial(run, dict.fromkeys(_GROUPS, _genres)), options=("form",)),
    Family(_GRADED, _read_graded, partial(run, dict.fromkeys(_GRADED, _yours))),
)
