"""Pairs of sentences with a class or a score: MRPC, SICK, and SNLI in SentEval's layout.

Sentences with their translations: the devtest of FLORES-200 (NLLB Team 2022).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import (
    find_folder,
    read_bytes,
    read_splits,
    refuse_repeats,
    senteval_folders,
)
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import below_header, decoded_lines, table_rows

NLI_CLASSES = ("contradiction", "neutral", "entailment")
MRPC_COLUMNS = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
SICK_COLUMNS = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")


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
    rows = list(below_header(content, path, MRPC_COLUMNS))
    ids = [f"{row[1]}-{row[2]}" for row in rows]
    refuse_repeats(ids, [row.line for row in rows], path)
    return SentencePairs(
        [row[3].strip() for row in rows],
        [row[4].strip() for row in rows],
        np.array([int(row.one_of(0, ("0", "1"))) for row in rows], np.int64),
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
    rows = list(below_header(content, path, SICK_COLUMNS))
    classes = [name.upper() for name in NLI_CLASSES]
    ids = [row[0] for row in rows]
    refuse_repeats(ids, [row.line for row in rows], path)
    return SentencePairs(
        [row[1].strip() for row in rows],
        [row[2].strip() for row in rows],
        np.array([classes.index(row.one_of(4, classes)) for row in rows], np.int64),
        np.array([row.score(3, 1, 5) for row in rows]),
        ids,
    )


def read_snli(data: Path) -> SentencePairSet:
    """Reads SNLI in SentEval's layout: the files `s1`, `s2` and `labels` with a line per pair.

    Raises:
        InputError: a file is missing, the lengths differ, or a label is unknown.
    """
    folder = find_folder(data, senteval_folders("downstream/SNLI"), "s1.train", "SNLI")
    splits, contents = {}, []
    for split in ("train", "dev", "test"):
        paths = [folder / f"{stem}.{split}" for stem in ("s1", "s2", "labels")]
        contents += [read_bytes(path) for path in paths]
        first, second = (
            [line.strip() for line in decoded_lines(content, path)]
            for content, path in zip(contents[-3:-1], paths, strict=False)
        )
        labels = parse_labels(contents[-1], paths[-1])
        if not labels or not len(first) == len(second) == len(labels):
            raise InputError(
                f"{folder}: s1.{split}, s2.{split} and labels.{split} have {len(first)}, "
                f"{len(second)} and {len(labels)} lines; expected equal numbers, and at least 1."
            )
        ids = [str(row) for row in range(len(first))]
        indices = np.array([NLI_CLASSES.index(label) for label in labels], np.int64)
        splits[split] = SentencePairs(first, second, indices, np.zeros(0), ids)
    return SentencePairSet("SNLI", splits, NLI_CLASSES, sha256_of(*contents))


def parse_labels(content: bytes, path: Path) -> list[str]:
    """Parses a class of inference on each line."""
    return [row.one_of(0, NLI_CLASSES) for row in table_rows(content, path, (1,))]


FILE = "heldout_flores200_devtest.jsonl"
_FOLDERS = ("parallel", "")


@dataclass(frozen=True)
class Translations:
    """Sentences by language; row i of each language is the same sentence."""

    texts: dict[str, list[str]]
    sha256: str


def read_translations(
    data: Path, languages: Sequence[str], most: int | None = None
) -> Translations:
    """Reads the first `most` sentences in some languages, such as `en` and `tr`.

    Raises:
        InputError: the file is missing, a language is missing in a row, or a sentence is blank.
    """
    from rejoinder.io.formats.json_lines import json_rows  # needs Polars

    path = find_folder(data, _FOLDERS, FILE, "the devtest of FLORES-200") / FILE
    content = read_bytes(path)
    rows = json_rows(content, path, dict.fromkeys(languages, "text")).head(most or 2**31)
    texts = {language: rows[language].str.strip_chars().to_list() for language in languages}
    for language, column in texts.items():
        if "" in column:
            raise InputError(
                f"{path} row {column.index('') + 1}: the sentence in {language!r} is blank. Get "
                "the file again."
            )
    return Translations(texts, sha256_of(content))
