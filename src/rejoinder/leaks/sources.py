"""Files that are looked through: streamed as rows of sentences, whatever their form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import open_pairs
from rejoinder.datasets.files import is_file
from rejoinder.errors import InputError
from rejoinder.formats.compression import decompressed, line_blocks
from rejoinder.formats.json_lines import FieldType, first_object, is_json_lines, json_rows
from rejoinder.formats.tables import BYTE_ORDER_MARK, text_lines

_BLOCK = 1 << 23
"""Bytes of a file in memory at a time, decompressed."""
_LONGEST = 1 << 26
"""Bytes of a line beyond which it is no row of sentences."""
_FORMS = (("sentences",), ("premises", "sentence2"), ("sentence1", "sentence2"),
          ("input", "response"), ("text",))  # fmt: skip
"""Fields of JSON lines that hold sentences; the first form whose fields are all there is taken."""
_PAIR = ("sentence1", "sentence2")
_STSB_COLUMNS = (7, 9)
_STSB_PLACES = (5, 6)


@dataclass(frozen=True)
class Rows:
    """Rows of a file, each with sentences that belong together: any two of them are a pair."""

    sentences: pl.Series
    """(S,) strings, all rows one after the other."""
    offsets: NDArray[np.int64]
    """(R + 1,) int64: row r is `sentences[offsets[r]:offsets[r + 1]]`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_rows(path: Path, *, columns: int | None = None) -> Iterator[Rows]:
    """The rows of a folder of pairs (its train split) or of a file, a piece at a time.

    A file is JSON lines, with `sentences`, `sentence1` and `sentence2`, `premises` and
    `sentence2`, `input` and `response`, or `text`; or text, a row a line, its sentences between
    tabs. Below a header with `sentence1` and `sentence2` those columns are read; of the STS
    Benchmark's 7 or 9 columns the two sentences. Compressed files are known by their content.

    Args:
        path: the folder or file.
        columns: of other text so many columns; none: all.

    Raises:
        InputError: it can't be read, is damaged, or a line is not what the first one is.
    """
    if not is_file(path) and path.is_dir():
        for frame in open_pairs(path).iter_frames("train", ["input", "response"]):
            yield _rows(frame)
        return
    first_line, read = 1, None
    for block in line_blocks(_with_line_ends(decompressed(path), path), _BLOCK):
        if read is None:
            if not block.strip():
                first_line += block.count(b"\n")
                continue
            read = _reader(block, path, columns)
        yield read(block, first_line)
        first_line += block.count(b"\n")
    if read is None:
        raise InputError(f"{path} has no sentences: it is empty.")


def _with_line_ends(pieces: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """The pieces, as long as lines end now and then: a block of lines is held in memory."""
    length = 0
    for piece in pieces:
        cut = piece.rfind(b"\n")
        length = length + len(piece) if cut < 0 else len(piece) - cut - 1
        if length > _LONGEST:
            raise InputError(
                f"{path} has a line of more than {_LONGEST >> 20} MiB; a row a line is needed. "
                "Folders of pairs, JSON lines and text can be read."
            )
        yield piece


class _JsonReader:
    """Blocks of JSON lines of one form."""

    def __init__(self, fields: dict[str, Any], path: Path) -> None:
        self.path = path
        form = next((form for form in _FORMS if fields.keys() >= set(form)), None)
        if form is None:
            known = "; ".join(" and ".join(map(repr, form)) for form in _FORMS)
            raise InputError(
                f"{path}: its lines have {', '.join(map(repr, fields)) or 'no fields'}; one of "
                f"these is needed: {known}."
            )
        self.types: dict[str, FieldType] = {
            name: "texts" if isinstance(fields[name], list) else "text" for name in form
        }

    def __call__(self, block: bytes, first_line: int) -> Rows:
        return _rows(json_rows(block, self.path, self.types, first_line=first_line))


class _TextReader:
    """Blocks of lines with sentences between tabs."""

    def __init__(self, line: str, path: Path, columns: int | None) -> None:
        self.path = path
        fields = line.split("\t")
        self.header = set(_PAIR) <= set(fields)
        self.places: Sequence[int] | None = None if columns is None else range(columns)
        if self.header:
            self.places = [fields.index(name) for name in _PAIR]
        elif len(fields) in _STSB_COLUMNS and _is_number(fields[4]):
            self.places = _STSB_PLACES

    def __call__(self, block: bytes, first_line: int) -> Rows:
        lines = text_lines(block, self.path, first_line=first_line)
        lines = [line for line in lines if line.strip()]
        if self.header:
            lines, self.header = lines[1:], False
        fields = pl.Series(lines, dtype=pl.String).str.split("\t")
        if self.places is not None:
            # a line may be shorter than others: what is not there is no sentence
            fields = fields.list.gather(list(self.places), null_on_oob=True).list.drop_nulls()
        return _rows(pl.DataFrame({"line": fields}))


def _reader(block: bytes, path: Path, columns: int | None) -> "_JsonReader | _TextReader":
    if is_json_lines(block):
        return _JsonReader(dict(first_object(block, path)), path)
    if b"\0" in block[:4096]:
        raise InputError(
            f"{path} is no text: it has a zero byte. Folders of pairs, JSON lines and text can be "
            "read."
        )
    lines = block.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    return _TextReader(first.decode("utf-8", "replace").removesuffix("\r"), path, columns)


def _rows(frame: pl.DataFrame) -> Rows:
    """All strings of a row, from columns of strings and of lists of them."""
    row = pl.concat_list(pl.all()) if frame.width > 1 else pl.all()
    lists = frame.select(row).to_series()
    if lists.dtype == pl.String:
        lists = lists.to_frame().select(pl.concat_list(pl.all())).to_series()
    lengths = lists.list.len().to_numpy().astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Rows(lists.filter(lists.list.len() > 0).explode(), offsets)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
