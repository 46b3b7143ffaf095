"""Comments as numbers for joining, and blocks of their strings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpus.reading.strings import Chosen, Index, Strings, gather

KEPT = 0
"""The rule of a comment that breaks none."""
GONE = 255
"""The rule of a row that another row with the same id replaces."""
NUMBERS = ("id", "parent", "thread", "answers", "rule")
"""The columns of `Rows` that tell what a comment is; the others tell where its strings are."""
STRINGS = ("id", "parent", "thread", "source", "text")
"""The columns of strings of a block, as they were published but for the clean text."""
PREFIXES: Mapping[str, str] = {"parent": "t1_", "thread": "t3_"}
"""What is left out of the strings of a column, as in `query.classified`."""


ELSEWHERE = "a comment answers one of another thread"


class CrossingError(Exception):
    """The comments can't be parted: one has no thread, or its parent is in another thread.

    The message is a clause without a full stop.
    """


@dataclass(frozen=True)
class Rows:
    """(N,) comments as numbers."""

    id: NDArray[np.uint64]
    """Hash of the id."""
    parent: NDArray[np.uint64]
    """Hash of the parent's id; any number for a comment that answers none."""
    thread: NDArray[np.uint64]
    """Hash of the thread."""
    answers: NDArray[np.bool_]
    """Whether the comment answers a comment."""
    rule: NDArray[np.uint8]
    """Number of the first rule that the comment breaks, from 1; `KEPT` or `GONE`."""
    which: Index
    """Number of the block that holds its strings."""
    row: Index
    """Row in that block."""

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, index: Any) -> Self:
        return type(self)(**{name: getattr(self, name)[index] for name in _NAMES})

    def chosen(self, blocks: "Blocks", column: str, at: Any = slice(None)) -> Chosen:
        """Returns where a column of the comments `at` is in memory, without prefixes."""
        columns = [block[column] for block in blocks]
        return Chosen(columns, self.which[at], self.row[at], PREFIXES.get(column, ""))

    def strings(self, blocks: "Blocks", column: str, at: Any = slice(None)) -> Strings:
        """Returns a column of the comments `at`, without prefixes."""
        return gather(*self.chosen(blocks, column, at))

    def in_parts(self, bits: int) -> "RowsInParts":
        """Returns the rows by part, of 2**`bits` parts."""
        part = (self.thread >> np.uint64(64 - bits)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        return RowsInParts(self[order], np.searchsorted(part[order], np.arange(2**bits + 1)))


@dataclass(frozen=True)
class RowsInParts:
    """Comments by part."""

    rows: Rows
    borders: NDArray[np.int64]
    """(P + 1,) first row of each part, and the number of rows."""

    def __getitem__(self, part: int) -> Rows:
        return self.rows[self.borders[part] : self.borders[part + 1]]


Block = Mapping[str, Strings]
"""The strings of comments by column, `STRINGS`."""
Blocks = list[Block]

_NAMES = tuple(field.name for field in fields(Rows))


def concatenated(rows: list[Rows]) -> Rows:
    """Returns the rows of several pieces, one after the other."""
    if not rows:
        return _EMPTY
    return Rows(**{name: np.concatenate([getattr(one, name) for one in rows]) for name in _NAMES})


def rows_of_runs(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the rows of runs: `sizes[i]` rows from `starts[i]`, for each i."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


_HASHES = np.empty(0, np.uint64)
_INDEX = np.empty(0, np.uint32)
_EMPTY = Rows(
    _HASHES, _HASHES, _HASHES, np.empty(0, np.bool_), np.empty(0, np.uint8), _INDEX, _INDEX
)
