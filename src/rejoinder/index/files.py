"""The files of an index. `index.json` lists its model, settings and segments.

Strings and embeddings of a segment are in files that are mapped into memory. Strings take two
files: their bytes, and their offsets. Embeddings can also be read row by row.
"""

import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.io.files import system
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import Count, Record, blake2b_number, read_sealed, sealed_text
from rejoinder.io.files.storage import lacks_memory
from rejoinder.protocols import Embeddings

FILE = "index.json"
FORMAT_VERSION = 3
REMEDY = "Copy the index again, or build it again with rejoinder index."
_MOST = (1 << 32) - 1
"""Most rows of a segment, and most dimensions."""
_Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_Few = Annotated[int, Meta(ge=1, le=_MOST)]
_Name = Annotated[str, Meta(pattern=r"\A[0-9]{6,}(\.[0-9a-f]+)?(\.deleted)?\Z")]
"""The name of a file or folder in the index; it can't lead to another folder."""
_CANDIDATES_PER_HIT = 10
WEIGHT = 0.25
"""Weight of meaning in a hybrid search, if `finetune` found none (`index.ranking`)."""


class Probing(Record, frozen=True):
    """How much of a segment's lists (`index.lists`) a query reads."""

    probes: _Few
    """Number of lists."""
    candidates: _Few
    """Number of rows that get an exact score."""
    recall: Annotated[float, Meta(ge=0, le=1)]
    """Share of the ten nearest neighbours found, measured on some rows of the segment."""

    def candidates_for(self, top_k: int) -> int:
        """Returns how many rows get an exact score, for `top_k` hits."""
        return max(self.candidates, _CANDIDATES_PER_HIT * top_k)


class IndexModel(Record, frozen=True):
    """The model that made the embeddings of an index."""

    name: str
    sha256: str
    """SHA-256 of its weights."""
    adaptation: str | None
    """SHA-256 of its adaptation, if it has one."""
    source: str | None
    """Its name, or the path of its folder. None: `model/` in the index, or unknown."""

    def is_same(self, other: "IndexModel") -> bool:
        """Returns whether both models give the same embeddings, wherever they are stored."""
        return (self.sha256, self.adaptation) == (other.sha256, other.adaptation)


class SegmentFacts(Record, frozen=True):
    """A segment of an index."""

    name: _Name
    """Its folder in the index."""
    rows: Annotated[int, Meta(ge=0, le=_MOST)]
    """Number of its texts, including deleted ones."""
    files: dict[str, dict[str, Any]]
    """SHA-256 and size of each of its files."""
    deletions: _Name | None = None
    """File in the index that lists the rows of deleted texts."""
    deleted: Count = 0
    """Number of deleted texts."""
    probing: Probing | None = None
    """None: the segment has no lists, so all rows are scanned."""

    @property
    def count(self) -> int:
        """Number of texts that are not deleted."""
        return self.rows - self.deleted


class Manifest(Record, frozen=True):
    """The content of `index.json`."""

    model: IndexModel
    dim: _Few
    segments: tuple[SegmentFacts, ...] = ()
    next_number: _Number = 1
    """Number of the next file or folder."""
    next_id: _Number = 1
    """The next id for a text without one."""
    recall: Annotated[float, Meta(gt=0, le=1)] = 0.98
    """Share of the ten nearest texts that approximate search should find. 1: exact search."""
    dtype: Literal["float32", "float16"] = "float32"
    """Type of the embeddings on disk."""
    response: bool = False
    """Whether the texts are encoded as responses."""
    weight: Annotated[float, Meta(ge=0, le=1)] = WEIGHT
    """Weight of meaning in a hybrid search, as `finetune` found for the model."""
    language: Annotated[str, Meta(pattern=r"\A[a-z]*\Z")] | None = None
    """Language whose stems the words are (`text.languages`); `""`: words are not stemmed. None: not
    stemmed, in an index from before stems, whose `weight` has another meaning."""

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.segments]
        for entry in self.segments:
            probes = 0 if entry.probing is None else entry.probing.probes
            if max(entry.deleted, probes) > entry.rows or names.count(entry.name) > 1:
                raise ValueError(f"{entry.name} contradicts itself or another segment")

    def write(self, folder: Path) -> None:
        """Writes the file atomically."""
        write_text(folder / FILE, sealed_text(self, FORMAT_VERSION))


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of an index.

    Raises:
        InputError: it is missing, damaged, or of another version.
    """
    explored = folder / "index"
    if (explored / FILE).is_file() and not (folder / FILE).exists():
        raise InputError(f"{folder} is not an index; name {explored}.")
    return read_sealed(
        folder / FILE,
        Manifest,
        FORMAT_VERSION,
        InputError,
        REMEDY,
        unreadable=f"{folder} is not an index, which rejoinder index makes",
        outdated="Build the index again with this version.",
    )


KEY = np.dtype("<u8")


def keys_of(strings: Sequence[str]) -> NDArray[np.uint64]:
    """Returns the (N,) uint64 keys of strings: 8 bytes of their BLAKE2b hash."""
    return np.fromiter((blake2b_number(text.encode()) for text in strings), np.uint64, len(strings))


OFFSET = np.dtype("<i8")
_PIECE = 65_536


class StringWriter:
    """Appends strings to the files `NAME.bin` and `NAME.offsets` of a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._bytes: IO[bytes] = (folder / f"{name}.bin").open("xb")
        self._offsets: IO[bytes] = (folder / f"{name}.offsets").open("xb")
        self._offsets.write(np.zeros(1, OFFSET).tobytes())
        self._end = 0

    def add(self, strings: Iterable[str]) -> None:
        """Appends strings, which must not contain lone surrogates."""
        encoded = [text.encode() for text in strings]
        ends = np.cumsum([len(text) for text in encoded], dtype=OFFSET) + self._end
        self._bytes.write(b"".join(encoded))
        self._offsets.write(ends.astype(OFFSET).tobytes())
        self._end = int(ends[-1]) if len(ends) else self._end

    def close(self) -> None:
        """Closes both files."""
        self._bytes.close()
        self._offsets.close()


class StringTable:
    """The strings that a `StringWriter` wrote."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        """Maps the files.

        Raises:
            InputError: the files do not hold `count` strings.
        """
        self._name = folder / f"{name}.bin"
        self._offsets = mapped(folder / f"{name}.offsets", OFFSET, (count + 1,))
        self._bytes = mapped(folder / f"{name}.bin", np.dtype("u1"), (int(self._offsets[-1]),))
        # slicing a string from these takes a third of the time that arrays take
        self._begins, self._view = self._offsets.data, self._bytes.data

    def __getitem__(self, index: int) -> str:
        begin, end = self._begins[index], self._begins[index + 1]
        try:
            return str(self._view[begin:end], "utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"string {index:,} of {self._name} is not UTF-8; the index is damaged. {REMEDY}"
            ) from None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[str]:
        """Yields all strings, ten times as fast as one by one."""
        try:
            for first in range(0, len(self), _PIECE):
                offsets = self._offsets[first : first + _PIECE + 1]
                read = self._bytes[offsets[0] : offsets[-1]].tobytes()
                for begin, end in pairwise((offsets - offsets[0]).tolist()):
                    yield read[begin:end].decode()
        except UnicodeDecodeError:
            raise InputError(f"{self._name} is not UTF-8; the index is damaged. {REMEDY}") from None

    def lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the number of bytes of the strings at some indices."""
        return np.asarray(self._offsets[indices + 1] - self._offsets[indices])

    def release(self) -> None:
        """Drops the files from the memory of this process (see `release`)."""
        release(self._offsets)
        release(self._bytes)


def mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Maps a file of numbers as an array, which is read on use.

    Raises:
        InputError: the file is missing or has another size.
    """
    expected = int(np.prod(shape)) * dtype.itemsize
    try:
        size = path.stat().st_size
        if size == expected:
            # an empty file can't be mapped
            if not size:
                return np.empty(shape, dtype)
            # as a plain array: slices of np.memmap are slower
            return np.asarray(np.memmap(path, dtype, "r", shape=shape))
    except OSError as error:
        if lacks_memory(error):
            raise
        raise InputError(f"{path} can't be read: {error.strerror or error}.") from None
    except ValueError:  # the file became shorter between the two calls
        size = 0
    raise InputError(
        f"{path} has {size:,} bytes but should have {expected:,}; the index is damaged. {REMEDY}"
    )


def release(array: NDArray[Any]) -> None:
    """Drops the pages of a `mapped` array from the memory of this process.

    They stay in the system's cache, which is freed when memory is needed.
    """
    mapping = getattr(array.base, "_mmap", None)
    if mapping is not None:
        system.release(mapping)


class StoredRows:
    """(N, D) embeddings in a file."""

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, int]) -> None:
        """Maps the file.

        Raises:
            InputError: it is missing or of another size.
        """
        self.path = path
        self.mapped: Embeddings = mapped(path, dtype, shape)
        self._handle: int | None = None

    def read(self, rows: NDArray[np.int64]) -> Embeddings:
        """Returns the (N, D) embeddings of rows, read one by one from the file.

        This keeps nothing of the file in the memory of this process. Reading the mapped file would
        map up to 2 MB around each row.

        Raises:
            InputError: the file has become shorter.
        """
        if not system.READS_AT:
            return np.asarray(self.mapped[rows])
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
        size = self.mapped.strides[0]
        found = np.empty((len(rows), self.mapped.shape[1]), self.mapped.dtype)
        into, read = found.view(np.uint8).reshape(-1).data, 0
        for at, row in enumerate(rows.tolist()):
            read += os.preadv(self._handle, [into[at * size : (at + 1) * size]], row * size)
        if read != found.nbytes:
            raise InputError(f"{self.path} is cut short. {REMEDY}")
        return found

    def blocks(self, rows: int) -> Iterator[tuple[int, Embeddings]]:
        """Yields the number of a first row and up to `rows` rows from it, then releases them."""
        for first in range(0, len(self.mapped), rows):
            yield first, self.mapped[first : first + rows]
            self.release()

    def release(self) -> None:
        """Drops the pages of the mapped file from the memory of this process."""
        release(self.mapped)
