"""Groups of texts with the same meaning: captions of an image, paraphrases, synonyms.

Graded pairs that you made: in a file, or in memory.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import read_bytes
from rejoinder.datasets.sts import GradedPairs, graded_pairs
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.json_lines import (
    FieldType,
    first_object,
    is_json_lines,
    json_rows,
    json_texts,
    line_of,
    matching_rows,
)
from rejoinder.io.formats.tables import table_rows

_GROUP = "sentences"
_PAIR = ("sentence1", "sentence2")
_LABELS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class SentenceGroups:
    """Groups of at least two sentences, in the order of the file."""

    sentences: list[str]
    """The sentences of all groups, joined."""
    offsets: NDArray[np.int64]
    """(G + 1,) int64: group g is `sentences[offsets[g]:offsets[g + 1]]`."""
    negatives: list[tuple[str, str]]
    """Pairs with label 0: sentences that do not mean the same."""
    dropped: int
    """Number of groups with fewer than two sentences, and of pairs with a blank sentence."""
    sha256: str
    """Hash of the decompressed file."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> list[str]:
        return self.sentences[self.offsets[group] : self.offsets[group + 1]]


def read_groups(
    path: Path,
    fields: Sequence[str] = (),
    where: Mapping[str, str] = MappingProxyType({}),
) -> SentenceGroups:
    """Reads the groups of a file; `.zst`, `.gz`, `.bz2` and `.xz` are decompressed.

    Each line is a JSON object with a list `sentences`, or a group of two, `sentence1` and
    `sentence2`, or `fields` whose texts are a group. In the second form all lines may have a
    `label`: 1, or 0 for a pair with two meanings. A file that is not JSON has two texts on each
    line, separated by a tab, or by spaces if they are single words. Blank sentences are dropped. A
    sentence that a group has twice stays twice. Only rows whose fields have the values `where` are
    read.

    Raises:
        InputError: the file can't be read, a field is missing or of another type, a label is
            unknown, or no group is left.
    """
    content = read_bytes(path)
    groups, negatives = _read(content, path, fields, where)
    stripped = groups.list.eval(pl.element().str.strip_chars())
    filled = stripped.list.eval(pl.element().filter(pl.element() != ""))
    kept = filled.filter(filled.list.len() > 1)
    whole = [(first, second) for first, second in negatives if first and second]
    if not len(kept):
        raise InputError(
            f"{path} has no group of two or more sentences in {len(groups) + len(negatives)} rows."
        )
    offsets = np.concatenate([[0], kept.list.len().cum_sum()], dtype=np.int64)
    dropped = len(groups) - len(kept) + len(negatives) - len(whole)
    sentences = kept.explode().to_list()
    return SentenceGroups(sentences, offsets, whole, dropped, sha256_of(content))


def _read(
    content: bytes, path: Path, fields: Sequence[str], where: Mapping[str, str]
) -> tuple[pl.Series, list[tuple[str, str]]]:
    """Returns the groups as lists of sentences, and the pairs with label 0."""
    if content.strip() and not is_json_lines(content):
        if fields or where:
            raise InputError(f"{path} has no fields because its lines are not JSON objects.")
        return _word_pairs(content, path), []
    present = first_object(content, path)
    chosen = matching_rows(content, path, where) if where else pl.lit(value=True)
    if fields:
        groups = json_texts(content, path, fields)
    elif _GROUP in present:
        groups = json_rows(content, path, {_GROUP: "texts"})[_GROUP]
    elif set(_PAIR) <= present.keys():
        return _labelled(content, path, chosen)
    else:
        raise InputError(
            f"{path} has the fields {', '.join(map(repr, present)) or '(none)'}; expected "
            "'sentences', or 'sentence1' and 'sentence2'."
        )
    return pl.DataFrame({_GROUP: groups}).filter(chosen).to_series(), []


def _word_pairs(content: bytes, path: Path) -> pl.Series:
    pairs = []
    for row in table_rows(content, path):
        texts = row.fields if len(row.fields) > 1 else row[0].split()
        if len(texts) != 2:
            row.refuse(
                f"found {len(texts)} texts; expected two, separated by a tab, or by spaces if they "
                "are single words."
            )
        pairs.append(texts)
    return pl.Series(pairs, dtype=pl.List(pl.String))


def _labelled(
    content: bytes, path: Path, chosen: pl.Series | pl.Expr
) -> tuple[pl.Series, list[tuple[str, str]]]:
    """Returns the pairs with label 1 as lists of two sentences, and the pairs with label 0."""
    fields: dict[str, FieldType] = {"sentence1": "text", "sentence2": "text", "label": "label"}
    frame = json_rows(content, path, fields, optional="label")
    labels = frame["label"].fill_null("1")
    unknown = (~labels.is_in(list(_LABELS))).arg_true()
    if len(unknown):
        row = int(unknown.item(0))
        raise InputError(
            f"{path} line {line_of(content, row)}: found the label {labels.item(row)[:30]!r}; "
            "expected 1 (same meaning) or 0."
        )
    alike = labels.replace_strict(_LABELS, return_dtype=pl.Boolean).alias("alike")
    pairs = frame.select(pl.col(_PAIR).str.strip_chars(), alike).filter(chosen)
    groups = pairs.filter("alike").select(pl.concat_list(_PAIR)).to_series()
    return groups, pairs.filter(~pl.col("alike")).select(_PAIR).rows()


FIELDS = ("sentence1", "sentence2", "score")
_COLUMNS = (3, 7, 9)
"""Sentence, sentence and score; or as in the STS Benchmark."""


def read_graded(path: Path) -> GradedPairs:
    """Reads pairs of sentences with a score from 0 (unrelated) to 5 (same meaning).

    Lines are JSON objects with `sentence1`, `sentence2` and `score`; or two sentences and a score,
    separated by tabs; or rows as in the STS Benchmark. Compressed files are decompressed.

    Raises:
        InputError: the file can't be read, or a line is invalid.
    """
    content = read_bytes(path)
    pairs = _json_pairs(content, path) if is_json_lines(content) else _table_pairs(content, path)
    ids = list(map(str, range(len(pairs))))
    names = [path.name] * len(pairs)
    return graded_pairs("all", pairs, names, ids, sha256_of(content), names)


def graded_rows(frame: pl.DataFrame) -> GradedPairs:
    """Returns the pairs of a table with the columns of `FIELDS`.

    Raises:
        InputError: a score is not a number from 0 to 5.
    """
    pairs = _graded(frame, "row {} of the graded pairs".format)
    ids = list(map(str, range(len(pairs))))
    sha256 = sha256_of(json.dumps(pairs).encode("utf-8", "surrogatepass"))
    names = ["all"] * len(pairs)
    return graded_pairs("all", pairs, names, ids, sha256, names)


def _json_pairs(content: bytes, path: Path) -> list[tuple[str, str, float]]:
    frame = json_rows(content, path, dict(zip(FIELDS, ("text", "text", "label"), strict=True)))
    return _graded(frame, lambda row: f"{path} line {line_of(content, row)}")


def _graded(frame: pl.DataFrame, place: Callable[[int], str]) -> list[tuple[str, str, float]]:
    grades = frame["score"].cast(pl.Float64, strict=False)
    wrong = ~grades.is_between(0, 5).fill_null(value=False)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        found = str(frame["score"][row])[:20]
        raise InputError(f"{place(row)}: found {found!r}; expected a score from 0 to 5.")
    return frame.select("sentence1", "sentence2", grades).rows()


def _table_pairs(content: bytes, path: Path) -> list[tuple[str, str, float]]:
    pairs = []
    for row in table_rows(content, path, _COLUMNS):
        first, second, score = (0, 1, 2) if len(row.fields) == _COLUMNS[0] else (5, 6, 4)
        pairs.append((row[first], row[second], row.score(score, 0, 5)))
    return pairs
