"""Writes sorted pairs to Parquet shards of a fixed layout: the same rows give the same bytes."""

import io
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from rejoinder.corpus.manifest import SPLITS, Shard
from rejoinder.corpus.shards import BLOCK_ROWS, COLUMNS, SHARD_ROWS
from rejoinder.files.addresses import Address
from rejoinder.files.hashed import sha256_of, sha256_of_file
from rejoinder.files.places import Place


@dataclass
class Written:
    """The shards that were written, and their counts."""

    shards: list[Shard] = field(default_factory=list)
    rows: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    sources: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Number of pairs by source and split."""
    unique_inputs: int = 0
    unique_responses: int = 0


def write_shards(folder: Place, frames: Iterator[pl.DataFrame]) -> Written:
    """Writes pairs, ordered by `part` (0 train, 1 dev, 2 test), as shards of one split each.

    A shard is written while the rows of the next one are collected.
    """
    written = Written()
    inputs, responses = _Distinct(), _Distinct()
    waiting: Future[Shard] | None = None
    with ThreadPoolExecutor(1) as writer:
        for number, (split, frame) in enumerate(_shards(frames)):
            if waiting is not None:
                written.shards.append(waiting.result())
            waiting = writer.submit(write_shard, folder, number, split, frame)
            _count(written, split, frame)
            inputs.add(frame.get_column("input"))
            responses.add(frame.get_column("response"))
        if waiting is not None:
            written.shards.append(waiting.result())
    written.unique_inputs, written.unique_responses = len(inputs), len(responses)
    return written


def _shards(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Cuts and joins frames to the rows of shards; yields them with their splits."""
    held: list[pl.DataFrame] = []
    rows, split = 0, 0
    for frame in frames:
        for part in _parts(frame):
            number = int(part.item(0, "part"))
            if number != split and held:
                yield SPLITS[split], pl.concat(held)
                held, rows = [], 0
            split = number
            while rows + len(part) >= SHARD_ROWS:
                held.append(part[: SHARD_ROWS - rows])
                part = part[SHARD_ROWS - rows :]
                yield SPLITS[split], pl.concat(held)
                held, rows = [], 0
            if len(part):
                held.append(part)
                rows += len(part)
    if held:
        yield SPLITS[split], pl.concat(held)


def _parts(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Returns the parts of a frame by split. Nearly every frame has only one."""
    splits = frame.get_column("part")
    if not len(frame) or splits[0] == splits[-1]:
        return [frame] if len(frame) else []
    return frame.partition_by("part", maintain_order=True)


def write_shard(folder: Place, number: int, split: str, frame: pl.DataFrame) -> Shard:
    """Writes the ordered pairs of one shard, whose bytes depend on nothing else."""
    path = folder / f"part-{number:05d}.parquet"
    frame = frame.with_columns(split=pl.lit(split)).select(COLUMNS)
    if isinstance(path, Address):
        content = io.BytesIO()
        _write_parquet(frame, content)
        path.put(content.getvalue())
        size, sha256 = len(content.getvalue()), sha256_of(content.getvalue())
    else:
        _write_parquet(frame, path)
        size, sha256 = path.stat().st_size, sha256_of_file(path)
    return Shard(path.name, split, len(frame), size, sha256)


def _write_parquet(frame: pl.DataFrame, target: Path | io.BytesIO) -> None:
    frame.write_parquet(
        target,
        compression="zstd",
        compression_level=1,
        row_group_size=BLOCK_ROWS,
        statistics=False,
    )


def _count(written: Written, split: str, frame: pl.DataFrame) -> None:
    written.rows += len(frame)
    written.splits[split] += len(frame)
    for source, rows in frame.get_column("source").value_counts().iter_rows():
        by_split = written.sources[source]
        by_split[split] = by_split.get(split, 0) + rows


class _Distinct:
    """Counts different texts by their 64-bit hashes, which takes 8 bytes per text."""

    def __init__(self) -> None:
        self.known = pl.Series(dtype=pl.UInt64)
        self.fresh: list[pl.Series] = []

    def add(self, texts: pl.Series) -> None:
        self.fresh.append(texts.hash(seed=0).unique())
        if sum(map(len, self.fresh)) > max(4_000_000, len(self.known)):
            self._merge()

    def _merge(self) -> None:
        # numpy.unique took thirty times as long
        self.known = pl.concat([self.known, *self.fresh]).unique()
        self.fresh = []

    def __len__(self) -> int:
        self._merge()
        return len(self.known)
