"""Reads labelled files as examples for objectives: distinct texts, and indices into them.

A file is read completely: the largest, SNLI, has half a million rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.groups import LABELS, read_groups, read_inference
from rejoinder.datasets.labelled import NLI_CLASSES
from rejoinder.datasets.leaks import EvaluationHashes
from rejoinder.io.files.hashed import sha256_number
from rejoinder.text.columns import as_series

if TYPE_CHECKING:
    from rejoinder.training.objectives import GroupFile, InferenceFile

ENTAILMENT, CONTRADICTION = NLI_CLASSES.index("entailment"), NLI_CLASSES.index("contradiction")
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Picked:
    """Indices of the texts of a batch of B examples."""

    left: Indices
    """(B,)"""
    right: Indices
    """(B,)"""
    more: Indices
    """(E,) additional candidates."""
    labels: NDArray[np.int64] | None = None
    """(B,) classes, if examples have them."""


class Examples(Protocol):
    """The examples that an objective makes of a labelled file."""

    def __len__(self) -> int: ...

    def pick(self, chosen: Indices, generator: np.random.Generator) -> Picked:
        """Returns the texts of the examples `chosen`."""
        ...


@dataclass(frozen=True)
class ClassifiedExamples:
    """Pairs of premise and hypothesis with a class."""

    premises: Indices
    hypotheses: Indices
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, chosen: Indices, generator: np.random.Generator) -> Picked:  # noqa: ARG002
        """Returns the texts and classes of the examples `chosen`."""
        none = np.empty(0, np.int64)
        return Picked(self.premises[chosen], self.hypotheses[chosen], none, self.labels[chosen])


@dataclass(frozen=True)
class EntailedExamples:
    """Pairs of premise and entailed hypothesis, and the contradictions of each premise."""

    premises: Indices
    hypotheses: Indices
    contradictions: Indices
    """Contradicting hypotheses, grouped by premise."""
    starts: Indices
    """(texts + 1,) offsets in `contradictions` of the group of each text."""

    def __len__(self) -> int:
        return len(self.premises)

    def pick(self, chosen: Indices, generator: np.random.Generator) -> Picked:
        """Returns the texts of the examples `chosen`, and a random contradiction per premise."""
        left, right = self.premises[chosen], self.hypotheses[chosen]
        counts = self.starts[left + 1] - self.starts[left]
        drawn = self.starts[left] + (generator.random(len(left)) * counts).astype(np.int64)
        more = np.unique(self.contradictions[drawn[counts > 0]])
        return Picked(left, right, more[~np.isin(more, right)])


@dataclass(frozen=True)
class GroupedExamples:
    """Groups of sentences; each pick draws two sentences per group."""

    starts: Indices
    """(groups + 1,) offsets in `members` of each group."""
    members: Indices

    def __len__(self) -> int:
        return len(self.starts) - 1

    def pick(self, chosen: Indices, generator: np.random.Generator) -> Picked:
        """Returns two different random texts of each of the groups `chosen`."""
        counts = self.starts[chosen + 1] - self.starts[chosen]
        first = (generator.random(len(chosen)) * counts).astype(np.int64)
        second = (generator.random(len(chosen)) * (counts - 1)).astype(np.int64)
        second += second >= first
        left, right = (self.members[self.starts[chosen] + index] for index in (first, second))
        return Picked(left, right, np.empty(0, np.int64))


@dataclass(frozen=True)
class LabelledText:
    """A labelled file after leaks were dropped."""

    texts: list[str]
    """Distinct texts."""
    sha256: str
    """SHA-256 of the file."""
    leaks: int
    """Rows dropped because they contain an evaluation sentence."""
    unlabelled: int
    """Rows dropped because they have no label, or a label that the config skips."""


@dataclass(frozen=True)
class InferenceText(ClassifiedExamples, LabelledText):
    """Labelled pairs of premise and hypothesis: examples for a classifier."""


@dataclass(frozen=True)
class GroupText(GroupedExamples, LabelledText):
    """Groups of sentences with the same meaning."""


@dataclass(frozen=True)
class Labelled:
    """A file of a task, read and checked."""

    name: str
    """Its path in the config."""
    content: LabelledText
    examples: Examples


def read_inference_text(
    file: "InferenceFile", path: Path, hashes: EvaluationHashes | None
) -> InferenceText:
    """Reads labelled pairs without the sentences in `hashes`.

    The official dev and test pairs of SNLI are dropped in any case.

    Raises:
        InputError: the file is missing or has another format.
    """
    pairs = read_inference(
        path,
        premise=file.premise,
        hypothesis=file.hypothesis,
        label=file.label,
        labels={**LABELS, **file.labels},
        where=file.where,
    )
    texts, (premises, hypotheses) = _indexed(pairs.premises, pairs.hypotheses)
    leaked = _leaked(texts, hashes)
    bad = leaked[premises] | leaked[hypotheses]
    bad |= _official_snli().contains_pairs(as_series(pairs.premises), as_series(pairs.hypotheses))
    kept = _sample(np.flatnonzero(~bad), file)
    leaks, unlabelled = int(bad.sum()), pairs.dropped + pairs.empty
    rows = premises[kept], hypotheses[kept], pairs.labels[kept]
    return InferenceText(texts, pairs.sha256, leaks, unlabelled, *rows)


def read_group_text(file: "GroupFile", path: Path, hashes: EvaluationHashes | None) -> GroupText:
    """Reads groups of sentences, without sentences in `hashes` and duplicates within a group.

    Raises:
        InputError: the file is missing or has another format.
    """
    groups = read_groups(path, file.fields, file.where)
    texts, (members,) = _indexed(groups.sentences)
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.offsets))
    fine = ~_leaked(texts, hashes)[members]
    first = np.unique(owner * len(texts) + members, return_index=True)[1]
    kept = np.intersect1d(first, np.flatnonzero(fine))
    counts = np.bincount(owner[kept], minlength=len(groups))
    usable = np.flatnonzero(counts > 1)
    kept = kept[np.isin(owner[kept], usable)]
    leaks, unlabelled = len(np.unique(owner[~fine])), len(groups.negatives) + groups.dropped
    starts = np.concatenate([[0], np.cumsum(counts[usable])])
    return GroupText(texts, groups.sha256, leaks, unlabelled, starts, members[kept])


def _indexed(*columns: Sequence[str]) -> tuple[list[str], list[Indices]]:
    """Returns the distinct texts, and each column as indices into them."""
    known: dict[str, int] = {}
    indices = [
        np.array([known.setdefault(text, len(known)) for text in column], np.int64)
        for column in columns
    ]
    return list(known), indices


@cache
def _official_snli() -> EvaluationHashes:
    return EvaluationHashes.load(("snli-dev", "snli-test"))


def _leaked(texts: Sequence[str], hashes: EvaluationHashes | None) -> NDArray[np.bool_]:
    return np.zeros(len(texts), bool) if hashes is None else hashes.contains(as_series(texts))


def _sample(rows: Indices, file: "InferenceFile") -> Indices:
    """Returns the fraction `file.share` of the rows; a smaller sample is part of a larger one."""
    if file.share == 1:
        return rows
    order = np.random.default_rng(sha256_number(file.path.encode(), 4)).permutation(len(rows))
    return np.sort(rows[order[: round(file.share * len(rows))]])
