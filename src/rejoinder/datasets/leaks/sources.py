"""Reads training data of any form as rows of sentences, in blocks."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import open_pairs
from rejoinder.datasets.files import is_file
from rejoinder.errors import InputError
from rejoinder.io.formats.compression import decompressed
from rejoinder.io.formats.json_lines import FieldType, first_object, is_json_lines, json_rows
from rejoinder.io.formats.line_blocks import line_blocks
from rejoinder.io.formats.tables import BYTE_ORDER_MARK, decoded_lines
from rejoinder.io.formats.text_lines import long_line

_BLOCK = 1 << 23
"""Number of decompressed bytes of a file in memory at a time."""
_FORMS = (("sentences",), ("premises", "sentence2"), ("sentence1", "sentence2"),
          ("input", "response"), ("text",))  # fmt: skip
"""Fields of JSON lines that hold sentences. The first form whose fields are all there is used."""
_PAIR = ("sentence1", "sentence2")
_STSB_COLUMNS = (7, 9)
"""Numbers of columns that files of the STS Benchmark have."""
_STSB_SENTENCES = [5, 6]
"""Indices of the columns with sentences in files of the STS Benchmark."""
_NUMBER = re.compile(r"\d+(\.\d*)?")


@dataclass(frozen=True)
class Rows:
    """Rows of a file. The sentences of a row belong together: any two of them are a pair."""

    sentences: pl.Series
    """(S,) strings: the sentences of all rows, one row after the other."""
    offsets: NDArray[np.int64]
    """(R + 1,) int64: row r is `sentences[offsets[r]:offsets[r + 1]]`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_rows(path: Path, *, columns: int | None = None) -> Iterator[Rows]:
    """Yields the rows of a file, or of the train split of a folder of pairs, in blocks.

    A file holds JSON lines or text. JSON lines have the fields `sentences`, `sentence1` and
    `sentence2`, `premises` and `sentence2`, `input` and `response`, or `text`. A line of text is a
    row, with tabs between its sentences. Below a header with `sentence1` and `sentence2` those
    columns are read, and of the STS Benchmark's 7 or 9 columns the two sentences. Compressed files
    are recognised by their content. Of other text, `columns` columns are read; None reads all.

    Raises:
        InputError: the file can't be read, is damaged, or a line has another form than the first.
    """
    if not is_file(path) and path.is_dir():
        for frame in open_pairs(path).iter_frames("train", ["input", "response"]):
            yield _rows(frame)
        return
    first_line, read = 1, None

    def refuse(before: int) -> None:
        raise long_line(str(path), first_line + before)

    for block in line_blocks(decompressed(path), _BLOCK, refuse):
        if read is None:
            if not block.strip():
                first_line += block.count(b"\n")
                continue
            read = _reader(block, path, columns)
        yield read(block, first_line)
        first_line += block.count(b"\n")
    if read is None:
        raise InputError(f"{path} has no sentences: it is empty.")


def _reader(block: bytes, path: Path, columns: int | None) -> Callable[[bytes, int], Rows]:
    """Returns the reader of blocks of the form that the first block has."""
    if is_json_lines(block):
        return _json_reader(first_object(block, path), path)
    if b"\0" in block[:4096]:
        raise InputError(
            f"{path} is not text: it has a zero byte. Name folders of pairs, JSON lines or text."
        )
    lines = block.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    return _text_reader(first.decode("utf-8", "replace").removesuffix("\r"), path, columns)


def _json_reader(fields: Mapping[str, Any], path: Path) -> Callable[[bytes, int], Rows]:
    form = next((form for form in _FORMS if fields.keys() >= set(form)), None)
    if form is None:
        known = "; ".join(" and ".join(map(repr, form)) for form in _FORMS)
        raise InputError(
            f"{path} has the fields {', '.join(map(repr, fields)) or '(none)'}; expected {known}."
        )
    types: dict[str, FieldType] = {
        name: "texts" if isinstance(fields[name], list) else "text" for name in form
    }
    return lambda block, first_line: _rows(json_rows(block, path, types, first_line=first_line))


def _text_reader(first: str, path: Path, columns: int | None) -> Callable[[bytes, int], Rows]:
    names = first.split("\t")
    header = set(_PAIR) <= set(names)
    chosen = None if columns is None else list(range(columns))
    if header:
        chosen = [names.index(name) for name in _PAIR]
    elif len(names) in _STSB_COLUMNS and _NUMBER.fullmatch(names[4]):
        chosen = _STSB_SENTENCES

    def read(block: bytes, first_line: int) -> Rows:
        lines = decoded_lines(block, path, first_line=first_line)
        lines = [line for line in lines if line.strip() and not (header and line == first)]
        fields = pl.Series(lines, dtype=pl.String).str.split("\t")
        if chosen is not None:
            # a line may have fewer columns than others
            fields = fields.list.gather(chosen, null_on_oob=True).list.drop_nulls()
        return _rows(pl.DataFrame({"line": fields}))

    return read


def _rows(frame: pl.DataFrame) -> Rows:
    """Collects the strings of each row, from columns of strings and of lists of strings."""
    row = pl.concat_list(pl.all()) if frame.width > 1 else pl.all()
    lists = frame.select(row).to_series()
    if lists.dtype == pl.String:
        lists = lists.to_frame().select(pl.concat_list(pl.all())).to_series()
    lengths = lists.list.len().to_numpy().astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Rows(lists.filter(lists.list.len() > 0).explode(), offsets)
