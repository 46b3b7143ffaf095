"""What a folder of pairs says of itself: counts, rules, the shards and their hashes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rejoinder.errors import InputError
from rejoinder.files.atomic import write_text
from rejoinder.files.hashed import check_seal, sealed

FORMAT = 1
FILE = "manifest.json"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Shard:
    """One Parquet file of pairs; all of its rows are of one split."""

    file: str
    split: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Malformed:
    """A line that is no comment."""

    file: str
    line: int
    """From 1."""
    problem: str


@dataclass(frozen=True)
class Counts:
    """What became of every line of the dumps."""

    lines: int
    """Lines (rows) read that are not blank, malformed ones included."""
    malformed: int
    comments: int
    """Comments read, each row with one id; a row of message and reply holds two."""
    duplicates: int
    """Comments that repeat another one, field by field, and were collapsed."""
    conflicts: int
    """Comments with the id of another but other fields, and not kept."""
    dropped: Mapping[str, int]
    """Comments dropped, by the first rule that they break, in the order of the rules."""
    kept: int
    """Comments that survive the rules."""
    without_parent: int
    """Kept comments that reply to a post, or to nothing."""
    parent_not_found: int
    """Kept comments whose parent is a comment that the dumps do not hold."""
    parent_dropped: int
    """Kept comments whose parent broke a rule."""
    capped: int
    """Pairs left out by the cap on equal replies or by the limit."""
    pairs: int
    unique_inputs: int
    """Different texts of messages."""
    unique_responses: int
    """Different texts of replies."""


@dataclass(frozen=True)
class Manifest:
    """`manifest.json`, written last."""

    rejoinder_version: str
    rules: str
    options: Mapping[str, Any]
    """What decided the content: columns, filters, split shares, caps."""
    inputs: tuple[Mapping[str, Any], ...]
    """Each input file: name, bytes, lines, malformed."""
    counts: Counts
    splits: Mapping[str, int]
    """Pairs of each split."""
    sources: Mapping[str, Mapping[str, int]]
    """Pairs of each source, by split."""
    shards: tuple[Shard, ...]
    malformed: tuple[Malformed, ...] = ()
    """The first malformed lines."""
    format_version: int = field(default=FORMAT)

    def write(self, folder: Path) -> None:
        """Write `manifest.json` into `folder`, with its own hash as the last key."""
        tree = sealed(asdict(self))
        write_text(folder / FILE, json.dumps(tree, indent=1, ensure_ascii=False) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of pairs.

    Raises:
        InputError: the folder holds none, or one of another format version.
    """
    path = folder / FILE
    try:
        tree = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no {FILE}; it is not a finished folder of pairs. Make one with "
            "rejoinder extract DUMP --out DIR."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read: {error}.") from None
    if not isinstance(tree, dict) or "shards" not in tree:
        raise InputError(
            f"{path} is not a manifest of pairs: it lists no shards. Name a folder that "
            "rejoinder extract wrote."
        )
    version = tree.get("format_version")
    if version != FORMAT:
        raise InputError(
            f"{path} is of format version {version!r}; this version reads {FORMAT}. Extract the "
            "pairs again."
        )
    if "sha256" in tree:  # manifests of early versions carry none
        tree = check_seal(tree, path, InputError, "Extract the pairs again.")
    try:
        tree["counts"] = Counts(**tree["counts"])
        tree["shards"] = tuple(Shard(**shard) for shard in tree["shards"])
        tree["malformed"] = tuple(Malformed(**line) for line in tree["malformed"])
        tree["inputs"] = tuple(tree["inputs"])
        return Manifest(**tree)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a manifest of pairs: {error}.") from None
