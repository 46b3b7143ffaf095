"""`index.json`: the model, the settings and the segments of an index.

Keys by which strings are found in an index.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import Count, Record, blake2b_number, read_sealed, sealed_text

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
"""Share of meaning in a hybrid search, where none was learnt (`index.ranking`)."""


class Probing(Record, frozen=True):
    """How much of the lists of a segment (`index.lists`) a query reads."""

    probes: _Few
    """Number of lists."""
    candidates: _Few
    """Number of rows that get a true score."""
    recall: Annotated[float, Meta(ge=0, le=1)]
    """Share of ten nearest neighbours that were found, of some rows of the segment."""

    def candidates_for(self, top_k: int) -> int:
        """Returns how many rows get a true score, for `top_k` hits."""
        return max(self.candidates, _CANDIDATES_PER_HIT * top_k)


class IndexModel(Record, frozen=True):
    """The model that the embeddings of an index come from."""

    name: str
    sha256: str
    """SHA-256 of its weights."""
    adaptation: str | None
    """SHA-256 of its adaptation, if it has one."""
    source: str | None
    """Its name, or the path of its folder. None: `model/` in the index, or not known."""

    def is_same(self, other: "IndexModel") -> bool:
        """Returns whether the embeddings of both are the same, wherever the models are."""
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
    """File in the index with the rows of deleted texts."""
    deleted: Count = 0
    """Number of deleted texts."""
    probing: Probing | None = None
    """None: it has no lists; all rows are scanned."""

    @property
    def count(self) -> int:
        """Number of texts that are not deleted."""
        return self.rows - self.deleted


class Manifest(Record, frozen=True):
    """What `index.json` says."""

    model: IndexModel
    dim: _Few
    segments: tuple[SegmentFacts, ...] = ()
    next_number: _Number = 1
    """Number of the next file or folder."""
    next_id: _Number = 1
    """The next id for a text without one."""
    recall: Annotated[float, Meta(gt=0, le=1)] = 0.98
    """Share of the ten nearest texts that approximate search should find. 1: search is exact."""
    dtype: Literal["float32", "float16"] = "float32"
    """Type of the embeddings on disk."""
    response: bool = False
    """Whether the texts are encoded as responses."""
    weight: Annotated[float, Meta(ge=0, le=1)] = WEIGHT
    """Share of meaning in a hybrid search, as `finetune` found for the model."""
    language: Annotated[str, Meta(pattern=r"\A[a-z]*\Z")] | None = None
    """What the words are stems of (`text.languages`); `""`: they are whole. None: they are whole,
    in an index that was made before there were stems, and `weight` is another."""

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.segments]
        for entry in self.segments:
            probes = 0 if entry.probing is None else entry.probing.probes
            if max(entry.deleted, probes) > entry.rows or names.count(entry.name) > 1:
                raise ValueError(f"{entry.name} contradicts itself or another segment")

    def write(self, folder: Path) -> None:
        """Writes the file, whole or not at all."""
        write_text(folder / FILE, sealed_text(self, FORMAT_VERSION))


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of an index.

    Raises:
        InputError: there is none, or it is damaged, or of another version.
    """
    return read_sealed(
        folder / FILE,
        Manifest,
        FORMAT_VERSION,
        InputError,
        REMEDY,
        unreadable=f"{folder} is not an index",
        outdated="Build the index again with this version.",
    )


KEY = np.dtype("<u8")


def keys_of(strings: Sequence[str]) -> NDArray[np.uint64]:
    """Returns the (N,) uint64 keys of strings: 8 bytes of their BLAKE2b."""
    return np.fromiter((blake2b_number(text.encode()) for text in strings), np.uint64, len(strings))
