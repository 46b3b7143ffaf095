"""`index.json`: the model of an index, and the segments that it consists of."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rejoinder.errors import InputError
from rejoinder.files.atomic import write_text
from rejoinder.files.hashed import read_sealed, sealed

FILE = "index.json"
FORMAT_VERSION = 1
REMEDY = "Copy the index again, or build it again with rejoinder index."


@dataclass(frozen=True)
class IndexModel:
    """The model that the embeddings of an index come from."""

    name: str
    sha256: str
    """SHA-256 of its weights."""
    adaptation: str | None
    """SHA-256 of its adaptation, if it has one."""
    source: str | None
    """What it is loaded by: a name, or the path of a folder. None: `model/` in the index."""


@dataclass(frozen=True)
class SegmentFacts:
    """A segment of an index."""

    name: str
    """Its folder in the index."""
    rows: int
    """Number of its texts, the deleted ones included."""
    files: Mapping[str, Mapping[str, Any]]
    """SHA-256 and size of each of its files."""
    deletions: str | None = None
    """File in the index with the rows of deleted texts."""
    deleted: int = 0
    """Number of deleted texts."""
    probing: Mapping[str, Any] | None = None
    """How `lists.faiss` is read (`lists.Probing`). None: there is none, the rows are scanned."""


@dataclass(frozen=True)
class Manifest:
    """What `index.json` says."""

    model: IndexModel
    dim: int
    segments: tuple[SegmentFacts, ...] = ()
    next_number: int = 1
    """Number of the next file or folder that is written."""
    next_id: int = 1
    """The next id for a text that comes without one."""
    recall: float = 0.98
    """Share of the ten nearest texts that approximate search is to find. 1: search is exact."""
    dtype: str = "float32"
    """Type of the embeddings on disk, `float32` or `float16`."""
    response: bool = False
    """Whether the embeddings are those of responses."""

    @property
    def count(self) -> int:
        """Number of texts."""
        return sum(entry.rows - entry.deleted for entry in self.segments)

    def write(self, folder: Path) -> None:
        """Writes the file, whole or not at all."""
        tree = sealed({"format_version": FORMAT_VERSION, **asdict(self)})
        write_text(folder / FILE, json.dumps(tree, indent=1, ensure_ascii=False) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of an index.

    Raises:
        InputError: there is none, or it is damaged or of another version.
    """
    tree = read_sealed(
        folder / FILE,
        FORMAT_VERSION,
        InputError,
        unreadable=f"{folder} is no index",
        outdated="Build the index again with this version.",
        remedy=REMEDY,
    )
    try:
        segments = tuple(SegmentFacts(**entry) for entry in tree.pop("segments"))
        return Manifest(model=IndexModel(**tree.pop("model")), segments=segments, **tree)
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / FILE} lacks what an index needs ({error}). {REMEDY}") from None
