"""Samples a folder of pairs by thread: a smaller corpus with the same dev and test splits."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec.structs import replace

from rejoinder.corpus.manifest import SPLITS, Manifest
from rejoinder.corpus.reading.columns import as_table
from rejoinder.corpus.writer import Pairs, write_shards
from rejoinder.errors import InputError
from rejoinder.io.files.atomic import new_folder
from rejoinder.text.vocabulary import mix64


def sample_threads(pairs: Pairs, share: float, out: Path, *, overwrite: bool = False) -> Manifest:
    """Writes a folder of pairs with a share of the threads of the train split, chosen by their ids.

    A thread is in the sample or not as a whole. A smaller share takes threads that each larger one
    takes too, and the same pairs give the same bytes. Dev and test are those of `pairs`, so that
    scores on them can be compared.

    Args:
        pairs: the folder to sample.
        share: share of the threads, above 0 and below 1.
        out: folder to write. It must be new or empty, unless `overwrite` is true.
        overwrite: whether a folder that is not empty is replaced.

    Returns:
        The manifest of the sample. Its counts of comments are those of `pairs`, from which it was
        taken; `options.thread_share` is the share and `options.sampled_from` the hash of `pairs`.

    Raises:
        InputError: the share is out of bounds, no pair is left to train on, or `out` is occupied.
        BusyError: another process is writing `out`.
        StorageError: `out` can't be written.
    """
    if not 0 < share < 1:
        raise InputError(f"the share of threads is {share:g}; allowed: above 0 and below 1.")
    with new_folder(out, overwrite=overwrite, inputs=[pairs.folder]) as folder:
        written = write_shards(folder, _tables(pairs, share))
        if not written.splits.get("train"):
            raise InputError(
                f"a share of {share:g} of the threads of {pairs.folder} holds no pair to train "
                "on; take a larger one."
            )
        options = {"thread_share": share, "sampled_from": pairs.sha256}
        manifest = replace(
            pairs.manifest,
            options={**pairs.manifest.options, **options},
            counts=replace(
                pairs.manifest.counts,
                pairs=written.rows,
                unique_inputs=written.unique_inputs,
                unique_responses=written.unique_responses,
            ),
            splits={split: written.splits.get(split, 0) for split in SPLITS},
            sources=dict(sorted(written.sources.items())),
            shards=tuple(written.shards),
        )
        manifest.write(folder)
    return manifest


def _tables(pairs: Pairs, share: float) -> Iterator[pa.Table]:
    for part, split in enumerate(SPLITS):
        for frame in pairs.iter_frames(split):
            kept = frame.filter(_chosen(frame["thread_id"], share)) if split == "train" else frame
            yield as_table(kept.with_columns(part=pl.lit(part)))


def _chosen(threads: pl.Series, share: float) -> pl.Series:
    # Polars' own hash differs between its versions
    sums = np.fromiter((zlib.crc32(thread.encode()) for thread in threads), np.uint64, len(threads))
    return pl.Series(mix64(sums + np.uint64(1)) < np.uint64(int(share * 2**64)))
