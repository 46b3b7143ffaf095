"""Natural language inference for training: SNLI, MultiNLI, and JSON lines of the same form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.datasets.catalogue import existing, missing, read_bytes
from rejoinder.datasets.sentence_pairs import NLI_CLASSES
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.json_lines import (
    FieldType,
    first_object,
    is_json_lines,
    json_rows,
    line_of,
    matching_rows,
)
from rejoinder.io.formats.tables import below_header

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
    """Reads the pairs of a file: JSON lines, or the table that is published with them.

    Examples are `snli_1.0_train.jsonl` and `multinli_1.0_train.txt`. `.zst`, `.gz`, `.bz2` and
    `.xz` are decompressed. The names of the fields are those of SNLI (Bowman et al. 2015) unless
    given. A premise may be a list of several, which are joined (MPE, Lai et al. 2017). `labels`
    maps the labels of the file to classes in `NLI_CLASSES`; "" leaves out rows of a label. Of JSON
    lines only those are read whose fields have the values `where`.

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
        frame = json_rows(content, path, fields).select(
            premise=first, hypothesis=pl.col(hypothesis), label=pl.col(label)
        )
        line = partial(line_of, content)
    elif where:
        raise InputError(
            f"{path} is a table; rows can be chosen by their fields in JSON lines only."
        )
    else:
        rows = list(below_header(content, path, names, exact=False))
        schema = dict.fromkeys(("premise", "hypothesis", "label"), pl.String)
        frame = pl.DataFrame([row.fields for row in rows], schema, orient="row")
        line = [row.line for row in rows].__getitem__
    if len(unknown := (~frame["label"].is_in(list(labels))).arg_true()):
        row = int(unknown.item(0))
        raise InputError(
            f"{path} line {line(row)}: {label} is {frame['label'].item(row)[:30]!r}; "
            f'known: {", ".join(map(repr, labels))}. Map it to a class, or to "" to leave its '
            "rows out."
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
    paths = [data / folder / name for folder in _SNLI_FOLDERS for name in names]
    if (path := next(filter(None, map(existing, paths)), None)) is None:
        raise missing(f"SNLI's {split} split", paths)
    return read_inference(path)


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
        raise InputError(
            f"{path} has no pair to learn from: of {rows} rows {rows - labelled} are left out for "
            f"their label and {labelled} have a blank sentence."
        )
    return InferencePairs(
        frame["premise"].to_list(),
        frame["hypothesis"].to_list(),
        frame["label"].to_numpy().astype(np.int64),
        rows - labelled,
        labelled - len(frame),
        sha256,
    )
