"""Makes dumps of any size with the shape of real ones, for benchmarks of extraction.

    python benchmarks/comments.py ../shared/data/raw_reddit/RC_* --comments 20000000 --out big

Threads, deleted comments, bots, authors, and replies to posts and to other months are those of the
given months, copied as often as needed under other ids. The bodies of a month are shuffled in each
copy, so that lengths keep their distribution and pairs differ. The same arguments give the same
files.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import zstandard

from rejoinder.corpus.reading.files import find_files
from rejoinder.io.files.addresses import AnyPath
from rejoinder.io.formats.compression import decompressed

FIELDS = ("id", "parent_id", "link_id", "author", "subreddit", "created_utc", "body")


def month(path: AnyPath) -> pl.DataFrame:
    """Returns the comments of a dump, all columns as strings."""
    content = b"".join(decompressed(path))
    return pl.read_ndjson(content, schema=dict.fromkeys(FIELDS, pl.String))


def copied(comments: pl.DataFrame, number: int, seed: int) -> pl.DataFrame:
    """Returns comments under the ids of copy `number`, with the bodies shuffled."""
    order = np.random.default_rng((seed, number)).permutation(len(comments))
    ending = pl.lit(f"_{number:05d}")
    ids = (pl.col(name) + ending for name in ("id", "parent_id", "link_id"))
    return comments.with_columns(*ids, body=comments.get_column("body").gather(order))


def write(path: Path, frames: Iterator[pl.DataFrame]) -> int:
    """Writes comments as JSON lines, compressed by zstd; returns their number."""
    rows = 0
    with path.open("wb") as file, zstandard.ZstdCompressor(level=3).stream_writer(file) as out:
        for frame in frames:
            out.write(frame.write_ndjson().encode())
            rows += len(frame)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dumps", nargs="+", help="months of comments, JSON lines")
    parser.add_argument("--comments", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True)
    months = [month(path) for path in find_files(chosen.dumps)]
    all_comments = sum(map(len, months))
    done = before = 0
    for number, comments in enumerate(months):
        before += len(comments)
        rows = round(chosen.comments * before / all_comments) - done
        done += rows
        copies = -(-rows // len(comments))
        frames = (
            copied(comments, copy, chosen.seed).head(rows - copy * len(comments))
            for copy in range(copies)
        )
        path = chosen.out / f"RC-{number:02d}.jsonl.zst"
        print(f"{path}: {write(path, frames):,} comments, {path.stat().st_size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
