"""Reads labelled data for training: groups with the same meaning, graded pairs, and inference.

Groups are captions of an image, paraphrases or synonyms. Graded pairs come from your own file or
from memory. Inference data is SNLI, MultiNLI, and JSON lines of the same form.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import find_file, read_bytes
from rejoinder.datasets.labelled import NLI_CLASSES
from rejoinder.datasets.semeval import GradedPairs, graded_pairs
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
from rejoinder.io.formats.text_lines import below_header, table_rows

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
    """Pairs with label 0: sentences with different meanings."""
    dropped: int
    """Number of groups with fewer than two sentences, and of pairs with a blank sentence."""
    sha256: str
    """Hash of the decompressed file."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, group: int) -> list[str]:
        return self.sentences[self.offsets[group] : self.offsets[group + 1]]


def read_groups(
    path: Path, fields: Sequence[str] = (), where: Mapping[str, str] = MappingProxyType({})
) -> SentenceGroups:
    """Reads the groups of a file; `.zst`, `.gz`, `.bz2` and `.xz` are decompressed.

    Each line is a JSON object with a list `sentences`, or a pair `sentence1` and `sentence2`, or
    `fields` whose texts form a group. In the second form all lines may have a `label`: 1, or 0 for
    a pair with different meanings. A file that is not JSON has two texts on each line, separated by
    a tab, or by spaces if they are single words. Blank sentences are dropped; duplicates in a group
    are kept. Only rows whose fields have the values `where` are read.

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
        rows = len(groups) + len(negatives)
        raise InputError(f"{path} has no group of two or more sentences in {rows} rows.")
    offsets = np.concatenate([[0], kept.list.len().cum_sum()], dtype=np.int64)
    dropped = len(groups) - len(kept) + len(negatives) - len(whole)
    sentences = kept.explode().to_list()
    return SentenceGroups(sentences, offsets, whole, dropped, sha256_of(content))


_Parts = tuple[pl.Series, list[tuple[str, str]]]
"""Groups as lists of sentences, and pairs with label 0."""


def _read(content: bytes, path: Path, fields: Sequence[str], where: Mapping[str, str]) -> _Parts:
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
            row.refuse(f"found {len(texts)} texts; expected two, separated by a tab or a space.")
        pairs.append(texts)
    return pl.Series(pairs, dtype=pl.List(pl.String))


def _labelled(content: bytes, path: Path, chosen: pl.Series | pl.Expr) -> _Parts:
    fields: dict[str, FieldType] = {"sentence1": "text", "sentence2": "text", "label": "label"}
    frame = json_rows(content, path, fields, optional="label")
    labels = frame["label"].fill_null("1")
    unknown = (~labels.is_in(list(_LABELS))).arg_true()
    if len(unknown):
        row = int(unknown.item(0))
        found = f"found the label {labels.item(row)[:30]!r}; expected 1 (same meaning) or 0"
        raise InputError(f"{path} line {line_of(content, row)}: {found}.")
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


_SNLI_FOLDERS = ("snli_1.0", "nli", "raw/snli_1.0", "")
LABELS: Mapping[str, str] = MappingProxyType({**{name: name for name in NLI_CLASSES}, "-": ""})
"""The classes of the labels of SNLI and MultiNLI. `-` means that the annotators disagreed."""


@dataclass(frozen=True)
class InferencePairs:
    """Premises and hypotheses with their classes, in the order of the file."""

    premises: list[str]
    hypotheses: list[str]
    labels: NDArray[np.int64]
    """(N,) int64, indices in `NLI_CLASSES`."""
    dropped: int
    """Number of rows left out because their label is mapped to "", such as `-`."""
    empty: int
    """Number of rows left out because a sentence is blank."""
    sha256: str
    """Hash of the decompressed file."""

    def __len__(self) -> int:
        return len(self.premises)


def read_inference(
    path: Path,
    *,
    premise: str = "sentence1",
    hypothesis: str = "sentence2",
    label: str = "gold_label",
    labels: Mapping[str, str] = LABELS,
    where: Mapping[str, str] = MappingProxyType({}),
) -> InferencePairs:
    """Reads the pairs of a file: JSON lines, or the table published with them.

    Examples are `snli_1.0_train.jsonl` and `multinli_1.0_train.txt`. `.zst`, `.gz`, `.bz2` and
    `.xz` are decompressed. By default, fields are named as in SNLI (Bowman et al. 2015). A premise
    may be a list of texts, which are joined (MPE, Lai et al. 2017). `labels` maps the labels of the
    file to classes in `NLI_CLASSES`; "" leaves out rows with a label. In JSON lines, only rows
    whose fields have the values `where` are read.

    Raises:
        InputError: the file can't be read, a field is missing, a label is unknown, or no row is
            left.
    """
    content = read_bytes(path)
    names = (premise, hypothesis, label)
    line: Callable[[int], int]
    if is_json_lines(content) or not content.strip():
        several = isinstance(first_object(content, path).get(premise), list)
        fields: dict[str, FieldType] = {
            premise: "texts" if several else "text", hypothesis: "text", label: "label"
        }  # fmt: skip
        first = pl.col(premise).list.join(" ") if several else pl.col(premise)
        columns = {"hypothesis": pl.col(hypothesis), "label": pl.col(label)}
        frame = json_rows(content, path, fields).select(premise=first, **columns)
        line = partial(line_of, content)
    elif where:
        raise InputError(f"{path} is a table; rows can be chosen by fields only in JSON lines.")
    else:
        rows = list(below_header(content, path, names, exact=False))
        schema = dict.fromkeys(("premise", "hypothesis", "label"), pl.String)
        frame = pl.DataFrame([row.fields for row in rows], schema, orient="row")
        line = [row.line for row in rows].__getitem__
    if len(unknown := (~frame["label"].is_in(list(labels))).arg_true()):
        row = int(unknown.item(0))
        found, known = frame["label"].item(row)[:30], ", ".join(map(repr, labels))
        raise InputError(
            f"{path} line {line(row)}: {label} is {found!r}; known: {known}. Map it to a class, or "
            'to "" to leave its rows out.'
        )
    if where:
        frame = frame.filter(matching_rows(content, path, where))
    return _pairs(frame, path, labels, sha256_of(content))


def read_snli_split(data: Path, split: str) -> InferencePairs:
    """Reads the dev or test split of SNLI 1.0 from its published file below a folder of data sets.

    Raises:
        DataMissingError: the file is missing.
        InputError: the file is invalid.
    """
    names = [f"snli_1.0_{split}.{form}" for form in ("jsonl", "txt")]
    return read_inference(find_file(data, _SNLI_FOLDERS, names, f"SNLI's {split} split"))


def _pairs(
    frame: pl.DataFrame, path: Path, labels: Mapping[str, str], sha256: str
) -> InferencePairs:
    rows = len(frame)
    classes = frame["label"].replace_strict(
        list(labels),
        [NLI_CLASSES.index(name) if name else -1 for name in labels.values()],
        return_dtype=pl.Int64,
    )
    frame = frame.with_columns(
        pl.col("premise", "hypothesis").str.strip_chars(), classes.alias("label")
    ).filter(pl.col("label") >= 0)
    labelled = len(frame)
    frame = frame.filter((pl.col("premise") != "") & (pl.col("hypothesis") != ""))
    if frame.is_empty():
        why = f"{rows - labelled} are left out for their label and {labelled} have a blank sentence"
        raise InputError(f"{path} has no pair to learn from: of {rows} rows {why}.")
    return InferencePairs(
        frame["premise"].to_list(),
        frame["hypothesis"].to_list(),
        frame["label"].to_numpy().astype(np.int64),
        rows - labelled,
        labelled - len(frame),
        sha256,
    )
