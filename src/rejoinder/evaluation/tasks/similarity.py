"""`stsb/*`, `stsb-unrepeated/*`, `graded/*`: similarities of graded pairs, in all and by genre.

What the tasks in `sts.py` share with these is here too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.datasets.sts import GradedPairs, pair_keys, read_stsb, without_repeats
from rejoinder.errors import DataMissingError
from rejoinder.evaluation.calls import call, numbers_of
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.metrics.correlation import correlations, share_within_one
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks.base import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of
from rejoinder.measures import Floats, Indices, angular_similarity
from rejoinder.protocols import Encodes, TellsFittedPairs

MEASURES: Mapping[str, Callable[[Floats], Floats]] = {
    "angular": angular_similarity,
    "cosine": lambda cosine: cosine,
}
"""Functions of cosines that give similarities, by name."""

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
FAMILIES = (
    Family(_GROUPS, _read, partial(run, dict.fromkeys(_GROUPS, _genres)), options=("form",)),
    Family(_GRADED, _read_graded, partial(run, dict.fromkeys(_GRADED, _yours))),
)
