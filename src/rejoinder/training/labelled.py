"""Labelled sentences as endless streams of batches: NLI to classify or to rank, groups to match.

A file is read whole: the largest, SNLI, has half a million rows. Each different text is turned
into ids once. An epoch visits the rows in an order that follows from the seed, the file and the
epoch, so that a position is two numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.datasets.groups import read_groups
from rejoinder.datasets.inference import InferenceColumns, read_inference
from rejoinder.datasets.sentence_pairs import NLI_CLASSES
from rejoinder.errors import InputError
from rejoinder.files.hashed import sha256_number
from rejoinder.leaks import EvaluationHashes
from rejoinder.text.features import TextFeatures
from rejoinder.text.normalize import as_series
from rejoinder.training.batches import Batch, BatchSize, Position, drop_ids
from rejoinder.training.stream import text_keys
from rejoinder.training.task_settings import (
    EntailmentRankingTask,
    InferenceFile,
    TaskConfig,
    TaskData,
)

_ENTAILMENT, _CONTRADICTION = NLI_CLASSES.index("entailment"), NLI_CLASSES.index("contradiction")
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Picked:
    """Places of the texts of a batch of B rows."""

    left: Places
    right: Places
    more: Places
    """Further candidates."""
    labels: NDArray[np.int64] | None = None


class Rows(Protocol):
    """What a row of a file is made of."""

    def __len__(self) -> int: ...

    def pick(self, chosen: Places, generator: np.random.Generator) -> Picked:
        """The texts of the rows `chosen`."""
        ...


@dataclass(frozen=True)
class ClassifiedRows:
    """Premise, hypothesis and class."""

    premises: Places
    hypotheses: Places
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, chosen: Places, generator: np.random.Generator) -> Picked:  # noqa: ARG002
        """See `Rows`."""
        none = np.empty(0, np.int64)
        return Picked(self.premises[chosen], self.hypotheses[chosen], none, self.labels[chosen])


@dataclass(frozen=True)
class EntailedRows:
    """Premise and entailed hypothesis, and what contradicts each premise."""

    premises: Places
    hypotheses: Places
    contradictions: Places
    """By premise, one after the other."""
    starts: Places
    """(texts + 1,) where those of each text begin."""

    def __len__(self) -> int:
        return len(self.premises)

    def pick(self, chosen: Places, generator: np.random.Generator) -> Picked:
        """See `Rows`; of each premise one contradiction at random, where it has any."""
        left, right = self.premises[chosen], self.hypotheses[chosen]
        counts = self.starts[left + 1] - self.starts[left]
        drawn = self.starts[left] + (generator.random(len(left)) * counts).astype(np.int64)
        more = np.unique(self.contradictions[drawn[counts > 0]])
        return Picked(left, right, more[~np.isin(more, right)])


@dataclass(frozen=True)
class GroupedRows:
    """Groups of sentences: two of each, drawn anew each time."""

    starts: Places
    """(groups + 1,) where each group begins among the texts' places."""
    members: Places

    def __len__(self) -> int:
        return len(self.starts) - 1

    def pick(self, chosen: Places, generator: np.random.Generator) -> Picked:
        """See `Rows`."""
        counts = self.starts[chosen + 1] - self.starts[chosen]
        first = (generator.random(len(chosen)) * counts).astype(np.int64)
        second = (generator.random(len(chosen)) * (counts - 1)).astype(np.int64)
        second += second >= first
        left, right = (self.members[self.starts[chosen] + place] for place in (first, second))
        return Picked(left, right, np.empty(0, np.int64))


@dataclass(frozen=True)
class Labelled:
    """A file of a task, read and checked, not yet ids."""

    name: str
    texts: list[str]
    """Each once."""
    rows: Rows
    sha256: str
    leaks: int
    """Rows left out because a sentence of theirs is one of evaluation."""
    dropped: int
    """Rows left out because they have no label, or one that the config leaves out."""


def read_labelled(
    task: TaskConfig, file: TaskData, folder: Path, hashes: EvaluationHashes | None
) -> Labelled:
    """A file of a task, without its leaks.

    Args:
        task: what is learned from it.
        file: where it is and how it is read.
        folder: what the file's path is below.
        hashes: sentences that may not be trained on; none: only the pairs of SNLI's dev and test.

    Raises:
        InputError: the file is not there, is of another form, or nothing of it is left.
    """
    path = folder / file.path
    if isinstance(file, InferenceFile):
        found = _read_inference(task, file, path, hashes)
    else:
        found = _read_groups(file, path, hashes)
    if len(found.rows) < 2:
        raise InputError(
            f"{path} leaves {len(found.rows)} rows for {task.objective}: "
            f"{found.leaks} hold an evaluation sentence, {found.dropped} no label in use; at least "
            "2 are needed."
        )
    return found


def _read_inference(
    task: TaskConfig, file: InferenceFile, path: Path, hashes: EvaluationHashes | None
) -> Labelled:
    known = {**InferenceColumns().labels, **file.labels}
    columns = InferenceColumns(file.premise, file.hypothesis, file.label, known)
    pairs = read_inference(path, columns)
    texts, (premises, hypotheses) = _places(pairs.premises, pairs.hypotheses)
    leaked = _leaked(texts, hashes)
    bad = leaked[premises] | leaked[hypotheses]
    # whatever a config says: the official dev and test are never trained on
    bad |= _official_snli().contains_pairs(as_series(pairs.premises), as_series(pairs.hypotheses))
    kept = _sample(np.flatnonzero(~bad), file)
    premises, hypotheses, labels = premises[kept], hypotheses[kept], pairs.labels[kept]
    rows: Rows = ClassifiedRows(premises, hypotheses, labels)
    if isinstance(task, EntailmentRankingTask):
        against = (labels == _CONTRADICTION) & task.hard_negatives
        order = np.argsort(premises[against], kind="stable")
        counts = np.bincount(premises[against], minlength=len(texts))
        yes = labels == _ENTAILMENT
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows = EntailedRows(premises[yes], hypotheses[yes], hypotheses[against][order], starts)
    dropped = pairs.dropped + pairs.empty
    return Labelled(file.path, texts, rows, pairs.sha256, int(bad.sum()), dropped)


def _read_groups(file: TaskData, path: Path, hashes: EvaluationHashes | None) -> Labelled:
    groups = read_groups(path)
    texts, (members,) = _places(groups.sentences)
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.offsets))
    # a group loses the sentence that leaks, and one that it has twice
    fine = ~_leaked(texts, hashes)[members]
    first = np.unique(owner * len(texts) + members, return_index=True)[1]
    kept = np.intersect1d(first, np.flatnonzero(fine))
    counts = np.bincount(owner[kept], minlength=len(groups))
    usable = _sample(np.flatnonzero(counts > 1), file)
    kept = kept[np.isin(owner[kept], usable)]
    starts = np.concatenate([[0], np.cumsum(counts[usable])])
    leaks = len(np.unique(owner[~fine]))
    rows = GroupedRows(starts, members[kept])
    dropped = len(groups.negatives) + groups.dropped
    return Labelled(file.path, texts, rows, groups.sha256, leaks, dropped)


def _places(*columns: Sequence[str]) -> tuple[list[str], list[Places]]:
    """Each different text once, and the places of each column's texts among them."""
    known: dict[str, int] = {}
    places = [
        np.array([known.setdefault(text, len(known)) for text in column], np.int64)
        for column in columns
    ]
    return list(known), places


@cache
def _official_snli() -> EvaluationHashes:
    return EvaluationHashes.load(("snli-dev", "snli-test"))


def _leaked(texts: Sequence[str], hashes: EvaluationHashes | None) -> NDArray[np.bool_]:
    return np.zeros(len(texts), bool) if hashes is None else hashes.contains(as_series(texts))


def _sample(rows: Places, file: TaskData) -> Places:
    """A share of the rows; a smaller share is part of a larger one."""
    count = round(file.share * len(rows))
    order = np.random.default_rng(_number(file.path)).permutation(len(rows))
    return np.sort(rows[order[:count]])


def _number(name: str) -> int:
    """A number for the name of a file, that goes into seeds."""
    return sha256_number(name.encode(), 4)


class LabelledStream:
    """The rows of a file, featurised by `features`, from any position on."""

    def __init__(
        self, labelled: Labelled, features: TextFeatures, *, seed: int, word_dropout: float = 0.0
    ) -> None:
        """A stream; the texts are turned into ids now."""
        self.name = labelled.name
        self.rows = len(labelled.rows)
        self._rows = labelled.rows
        texts = pl.Series(labelled.texts, dtype=pl.String)
        self._sentences, self._keys = features(texts), text_keys(texts)
        self._seed = (seed, _number(labelled.name))
        self._word_dropout = word_dropout

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Batches without end; a set smaller than a batch gives all its rows each time.

        The rest of an epoch too small for a batch is left out.
        """
        place, number = start, 0
        while True:
            order = self._generator(place.epoch, 0).permutation(self.rows)
            while (count := min(size(number), self.rows)) <= self.rows - place.offset:
                chosen = order[place.offset : place.offset + count]
                after = Position(place.epoch, 0, place.offset + count)
                yield self._batch(chosen, self._generator(place.epoch, 1 + place.offset), after)
                number, place = number + 1, after
            place = Position(place.epoch + 1)

    def _batch(self, chosen: Places, generator: np.random.Generator, after: Position) -> Batch:
        picked = self._rows.pick(chosen, generator)
        sides = (picked.left, picked.right, picked.more)
        sentences = self._sentences.take(np.concatenate(sides))
        if self._word_dropout:
            sentences = drop_ids(sentences, self._word_dropout, generator)
        keys = self._keys[picked.left], self._keys[picked.right]
        return Batch(sentences, *keys, after, picked.labels)

    def _generator(self, *place: int) -> np.random.Generator:
        return np.random.default_rng([*self._seed, *place])
