"""Reading a folder of pairs: by block for training, by split for evaluation. Polars alone."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from rejoinder.corpus.manifest import SPLITS, Manifest, read_manifest
from rejoinder.errors import InputError

COLUMNS = ("thread_id", "input_id", "response_id", "input", "response", "source", "split")
BLOCK_ROWS = 4_096
"""Rows of a Parquet row group, and of a block: what is read at a time."""
SHARD_ROWS = 64 * BLOCK_ROWS


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of one shard."""

    shard: Path
    start: int
    rows: int


@dataclass(frozen=True)
class Pairs:
    """A checked folder of pairs."""

    folder: Path
    manifest: Manifest

    def count(self, split: str) -> int:
        """Number of pairs of a split."""
        return self.manifest.splits.get(split, 0)

    @property
    def sources(self) -> dict[str, int]:
        """Number of pairs of each source, over all splits."""
        return {name: sum(splits.values()) for name, splits in self.manifest.sources.items()}

    @cached_property
    def sha256(self) -> str:
        """One hash for all the pairs: of the hashes of the shards, in order."""
        joined = "\n".join(shard.sha256 for shard in self.manifest.shards)
        return hashlib.sha256(joined.encode()).hexdigest()

    def blocks(self, split: str) -> list[Block]:
        """The rows of a split in pieces of at most `BLOCK_ROWS`, in order.

        Raises:
            InputError: no such split.
        """
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; there are {', '.join(SPLITS)}.")
        return [
            Block(self.folder / shard.file, start, min(BLOCK_ROWS, shard.rows - start))
            for shard in self.manifest.shards
            if shard.split == split
            for start in range(0, shard.rows, BLOCK_ROWS)
        ]

    def read(self, block: Block, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """The rows of a block; only its row group is read."""
        frame = pl.scan_parquet(block.shard).select(columns).slice(block.start, block.rows)
        return frame.collect()

    def iter_frames(self, split: str, columns: Sequence[str] = COLUMNS) -> Iterator[pl.DataFrame]:
        """The pairs of a split, block by block, in order."""
        for block in self.blocks(split):
            yield self.read(block, columns)

    def frame(self, split: str, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """All pairs of a split: dev and test are small enough for that."""
        frames = list(self.iter_frames(split, columns))
        return (
            pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        )


def open_pairs(folder: Path, *, verify: bool = False) -> Pairs:
    """The pairs in `folder`, once its shards are there and of the right size.

    Args:
        folder: what `rejoinder extract` wrote.
        verify: also compare the hash of every shard.

    Raises:
        InputError: the folder is not finished, or a shard is missing, cut or changed.
    """
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        path = folder / shard.file
        if not path.is_file():
            raise InputError(f"{path} is missing; the manifest lists it. Extract anew.")
        if path.stat().st_size != shard.bytes:
            raise InputError(
                f"{path} has {path.stat().st_size} bytes where the manifest says {shard.bytes}; "
                "it is damaged. Extract anew."
            )
        if verify and sha256_of(path) != shard.sha256:
            raise InputError(f"{path} is not the file that the manifest lists. Extract anew.")
    return Pairs(folder, manifest)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
