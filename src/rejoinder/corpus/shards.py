"""Reads a folder of pairs: by block for training, by split for evaluation. Needs only Polars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl
from msgspec import to_builtins

from rejoinder.corpus.manifest import SPLITS, Manifest, read_manifest
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import check_file, sha256_of
from rejoinder.io.files.storage import lacks_memory, read_errors

COLUMNS = ("thread_id", "input_id", "response_id", "input", "response", "source", "split")
BLOCK_ROWS = 4_096
"""Number of rows in a Parquet row group, and in a block: what is read at a time."""
SHARD_ROWS = 64 * BLOCK_ROWS
_REMEDY = "Extract the pairs again."


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one shard."""

    shard: Path
    start: int
    """Index of the first row, from 0."""
    rows: int


@dataclass(frozen=True)
class Pairs:
    """A checked folder of pairs."""

    folder: Path
    manifest: Manifest
    _checked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Splits whose shards have been compared with their hashes."""

    def count(self, split: str) -> int:
        """Returns the number of pairs in a split."""
        return self.manifest.splits.get(split, 0)

    @cached_property
    def sha256(self) -> str:
        """A hash of all pairs: SHA-256 of the hashes of the shards, in order."""
        joined = "\n".join(shard.sha256 for shard in self.manifest.shards)
        return sha256_of(joined.encode())

    @cached_property
    def words(self) -> frozenset[str] | None:
        """The words that a model of the pairs may know; None: all.

        Raises:
            InputError: their file is missing or damaged.
        """
        facts = self.manifest.words
        if facts is None:
            return None
        path = self.folder / facts.file
        with read_errors(path):
            content = path.read_bytes()
        if sha256_of(content) != facts.sha256:
            raise InputError(f"{path} was changed after it was written. {_REMEDY}")
        return frozenset(content.decode().split("\n")) - {""}

    def blocks(self, split: str) -> list[Block]:
        """Returns the blocks of a split, of at most `BLOCK_ROWS` rows, in order.

        The first call for a split compares its shards with their hashes, so that no damaged row is
        ever used.

        Raises:
            InputError: there is no such split, or one of its shards is damaged.
        """
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; there are {', '.join(SPLITS)}.")
        if split not in self._checked:
            for shard in self.manifest.shards:
                if shard.split == split:
                    check_file(self.folder / shard.file, to_builtins(shard), InputError, _REMEDY)
                    _check_rows(self.folder / shard.file, shard.rows)
            self._checked.add(split)
        return [
            Block(self.folder / shard.file, start, min(BLOCK_ROWS, shard.rows - start))
            for shard in self.manifest.shards
            if shard.split == split
            for start in range(0, shard.rows, BLOCK_ROWS)
        ]

    def read(self, block: Block, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """Returns the rows of a block. Only its row group is read."""
        frame = (
            pl.scan_parquet(block.shard, glob=False).select(columns).slice(block.start, block.rows)
        )
        return frame.collect()

    def iter_frames(self, split: str, columns: Sequence[str] = COLUMNS) -> Iterator[pl.DataFrame]:
        """Yields the pairs of a split, block by block, in order."""
        for block in self.blocks(split):
            yield self.read(block, columns)

    def frame(self, split: str, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
        """Returns all pairs of a split. Dev and test are small enough for this."""
        empty = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        return pl.concat([empty, *self.iter_frames(split, columns)])


def _check_rows(path: Path, expected: int) -> None:
    try:
        rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if lacks_memory(error):
            raise
        raise InputError(f"{path} can't be read: {error}. {_REMEDY}") from None
    if rows != expected:
        raise InputError(f"{path} has {rows:,} rows, and {expected:,} are listed. {_REMEDY}")


def open_pairs(folder: Path) -> Pairs:
    """Opens a folder that `rejoinder extract` wrote, and checks the sizes of its shards.

    Raises:
        InputError: the folder is not finished, or a shard is missing or cut.
    """
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        check_file(folder / shard.file, to_builtins(shard), InputError, _REMEDY, content=False)
    return Pairs(folder, manifest)
