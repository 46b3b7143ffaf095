"""`index.json`: the model of an index, and the segments that it consists of."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from rejoinder.errors import InputError
from rejoinder.index.segment import DTYPES
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.hashed import read_sealed, sealed

FILE = "index.json"
FORMAT_VERSION = 1
_NAME = re.compile(r"\d{6,}(\.[0-9a-f]+)?(\.deleted)?")
"""Names of what the manifest names in the index: no path leads out of it."""
_MOST = 1 << 32
"""Rows of a segment, and dimensions, are fewer."""
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
        manifest = Manifest(model=IndexModel(**tree.pop("model")), segments=segments, **tree)
        _check(manifest)
        return manifest
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / FILE} lacks what an index needs ({error}). {REMEDY}") from None


def _check(manifest: Manifest) -> None:
    """Raises ValueError for a value that `Manifest.write` can't have written."""
    # half of a surrogate pair can't be written again: a ValueError, too
    json.dumps(asdict(manifest), ensure_ascii=False).encode()
    parts: list[Manifest | IndexModel | SegmentFacts] = [manifest, manifest.model]
    for part in [*parts, *manifest.segments]:
        hints = get_type_hints(type(part))
        for field in fields(part):
            value = getattr(part, field.name)
            if type(value) not in _types(hints[field.name]):
                raise ValueError(f"{field.name} is {value!r}")
    if manifest.dtype not in DTYPES or not 0 < manifest.recall <= 1:
        raise ValueError(f"dtype is {manifest.dtype!r}, recall {manifest.recall}")
    names = [entry.name for entry in manifest.segments]
    counts = {"dim": manifest.dim, "next_number": manifest.next_number, "next_id": manifest.next_id}
    for name, value in counts.items():
        if value < 1 or (name == "dim" and value >= _MOST):
            raise ValueError(f"{name} is {value}")
    for entry in manifest.segments:
        if not (_NAME.fullmatch(entry.name) and _NAME.fullmatch(entry.deletions or entry.name)):
            raise ValueError(f"a segment is called {entry.name!r}, {entry.deletions!r}")
        if not 0 <= entry.deleted <= entry.rows < _MOST or names.count(entry.name) > 1:
            raise ValueError(f"{entry.name} has {entry.deleted} of {entry.rows} texts deleted")
        if entry.probing is not None and not _is_probing(entry.probing, entry.rows):
            raise ValueError(f"the lists of {entry.name} are probed by {entry.probing}")


def _is_probing(value: Mapping[str, Any], rows: int) -> bool:
    """Returns whether a value is that of a `lists.Probing` of a segment of `rows` texts."""
    if value.keys() != {"probes", "candidates", "recall"}:
        return False
    counts = [value["probes"], value["candidates"]]
    if any(type(count) is not int or not 1 <= count < _MOST for count in counts):
        return False
    recall = value["recall"]
    return counts[0] <= rows and type(recall) in (int, float) and 0 <= recall <= 1


def _types(hint: Any) -> tuple[type, ...]:
    """Returns the types that a value read from JSON may have; whole numbers are floats, too."""
    found = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    plain = {Mapping: dict}
    kinds = [getattr(kind, "__origin__", kind) for kind in found]
    kinds = [plain.get(kind, kind) for kind in kinds]
    return (*kinds, int) if float in kinds else tuple(kinds)
