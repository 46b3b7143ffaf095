"""Groups of texts with the same meaning: captions of an image, paraphrases, synonyms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.datasets.files import read_bytes
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
