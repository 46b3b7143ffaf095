"""Pairs of sentences with a class or a score: MRPC, SICK, and SNLI in SentEval's layout."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.files import (
    find_folder,
    number_of,
    read_bytes,
    read_splits,
    refuse_empty,
    refuse_repeats,
    senteval_folders,
)
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import filled_lines, tab_separated, text_lines

NLI_CLASSES = ("contradiction", "neutral", "entailment")


@dataclass(frozen=True)
class SentencePairs:
    """The pairs of one split."""

    first: list[str]
    second: list[str]
    labels: NDArray[np.int64]
    """(N,) int64, indices in the classes of the set. Empty for a set without classes."""
    scores: NDArray[np.float64]
    """(N,) float64. Empty for a set without scores."""
    ids: list[str]
    """A name for each pair, under which predictions are compared."""

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class SentencePairSet:
    """A data set by split."""

    name: str
    splits: Mapping[str, SentencePairs]
    classes: tuple[str, ...]
    sha256: str


def read_mrpc(data: Path) -> SentencePairSet:
    """Reads the Microsoft Research Paraphrase Corpus. Quotes are plain characters.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {split: f"msr_paraphrase_{split}.txt" for split in ("train", "test")}
    splits, sha256 = read_splits(data, "downstream/MRPC", files, "MRPC", parse_mrpc)
    return SentencePairSet("MRPC", splits, ("0", "1"), sha256)


def parse_mrpc(content: bytes, path: Path) -> SentencePairs:
    """Parses a file of MRPC. The id of a pair is made of the ids of both sentences."""
    rows, numbers = [], []
    for number, line in filled_lines(content, path):
        if number == 1:  # it names the columns
            continue
        row = tab_separated(line, (5,), path, number)
        if row[0] not in ("0", "1"):
            raise InputError(f"{path} line {number}: class {row[0][:20]!r}; 0 or 1 is needed.")
        rows.append(row)
        numbers.append(number)
    ids = [f"{row[1]}-{row[2]}" for row in rows]
    refuse_repeats(ids, numbers, path)
    return SentencePairs(
        [row[3].strip() for row in rows],
        [row[4].strip() for row in rows],
        np.array([int(row[0]) for row in rows], np.int64),
        np.zeros(0),
        ids,
    )


def read_sick(data: Path) -> SentencePairSet:
    """Reads SICK: pairs with an entailment class and a relatedness from 1 to 5.

    Raises:
        InputError: a file is missing, or a line is invalid.
    """
    files = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
    splits, sha256 = read_splits(data, "downstream/SICK", files, "SICK", parse_sick)
    return SentencePairSet("SICK", splits, NLI_CLASSES, sha256)


def parse_sick(content: bytes, path: Path) -> SentencePairs:
    """Parses a file of SICK."""
    first, second, labels, scores, ids, numbers = [], [], [], [], [], []
    for number, line in filled_lines(content, path):
        if number == 1:
            continue
        row = tab_separated(line, (5,), path, number)
        label = row[4].strip().lower()
        if label not in NLI_CLASSES:
            raise InputError(
                f"{path} line {number}: judgement {row[4][:20]!r}; one of "
                f"{', '.join(NLI_CLASSES).upper()} is needed."
            )
        ids.append(row[0])
        numbers.append(number)
        first.append(row[1].strip())
        second.append(row[2].strip())
        scores.append(number_of(row[3], 1, 5, path, number))
        labels.append(NLI_CLASSES.index(label))
    refuse_repeats(ids, numbers, path)
    return SentencePairs(first, second, np.array(labels, np.int64), np.array(scores), ids)


def read_snli(data: Path) -> SentencePairSet:
    """Reads SNLI in SentEval's layout: the files `s1`, `s2` and `labels` with a line per pair.

    Raises:
        InputError: a file is missing, the lengths differ, or a label is unknown.
    """
    folder = find_folder(data, senteval_folders("downstream/SNLI"), "s1.train", "SNLI")
    splits, contents = {}, []
    for split in ("train", "dev", "test"):
        columns = []
        for stem in ("s1", "s2", "labels"):
            path = folder / f"{stem}.{split}"
            contents.append(read_bytes(path))
            columns.append([line.strip() for line in text_lines(contents[-1], path)])
        first, second, names = columns
        if not len(first) == len(second) == len(names):
            raise InputError(
                f"{folder}: s1.{split}, s2.{split} and labels.{split} have {len(first)}, "
                f"{len(second)} and {len(names)} lines; the numbers must be equal."
            )
        for number, name in enumerate(names, 1):
            if name not in NLI_CLASSES:
                raise InputError(
                    f"{folder}/labels.{split} line {number}: {name[:20]!r}; one of "
                    f"{', '.join(NLI_CLASSES)} is needed."
                )
        refuse_empty(len(names), folder / f"labels.{split}")
        labels = np.array([NLI_CLASSES.index(name) for name in names], np.int64)
        ids = [str(row) for row in range(len(first))]
        splits[split] = SentencePairs(first, second, labels, np.zeros(0), ids)
    return SentencePairSet("SNLI", splits, NLI_CLASSES, sha256_of(*contents))
