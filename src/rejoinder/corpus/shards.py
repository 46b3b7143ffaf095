"""Reading a folder of pairs: by block for training, by split for evaluation. Polars alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from rejoinder.corpus.manifest import SPLITS, Manifest, read_manifest
from rejoinder.errors import InputError
from rejoinder.files.hashed import check_file, sha256_of

COLUMNS = ("thread_id", "input_id", "response_id", "input", "response", "source", "split")
BLOCK_ROWS = 4_096
"""Rows of a Parquet row group, and of a block: what is read at a time."""
SHARD_ROWS = 64 * BLOCK_ROWS
_REMEDY = "Extract the pairs again."


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
    _checked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Splits whose shards were compared with their hashes."""

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
        return sha256_of(joined.encode())

    def blocks(self, split: str) -> list[Block]:
        """The rows of a split in pieces of at most `BLOCK_ROWS`, in order.

        The first call for a split compares its shards with their hashes, so that no damaged row is
        ever used.

        Raises:
            InputError: no such split, or a shard of it is damaged.
        """
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; there are {', '.join(SPLITS)}.")
        self._check(split)
        return [
            Block(self.folder / shard.file, start, min(BLOCK_ROWS, shard.rows - start))
            for shard in self.manifest.shards
            if shard.split == split
            for start in range(0, shard.rows, BLOCK_ROWS)
        ]

    def _check(self, split: str) -> None:
        if split in self._checked:
            return
        for shard in self.manifest.shards:
            if shard.split == split:
                facts = {"bytes": shard.bytes, "sha256": shard.sha256}
                check_file(self.folder / shard.file, facts, InputError, _REMEDY)
        self._checked.add(split)

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


def open_pairs(folder: Path) -> Pairs:
    """The pairs in `folder`, once its shards are there and of the right size.

    Args:
        folder: what `rejoinder extract` wrote.

    Raises:
        InputError: the folder is not finished, or a shard is missing or cut.
    """
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        path = folder / shard.file
        if not path.is_file():
            raise InputError(f"{path} is missing; the manifest lists it. {_REMEDY}")
        if path.stat().st_size != shard.bytes:
            raise InputError(
                f"{path} has {path.stat().st_size:,} bytes where the manifest says "
                f"{shard.bytes:,}; it is damaged. {_REMEDY}"
            )
    return Pairs(folder, manifest)
