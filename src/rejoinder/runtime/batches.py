"""Texts as batches of ids, the next one prepared while the last one is computed with."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from rejoinder.text.features import TextFeatures
from rejoinder.text.ragged import Ragged

BATCH_SIZE = 4_096
"""Sentences: larger batches are no faster, and their sums leave the caches."""


def prepared(
    texts: pl.Series, features: TextFeatures, batch_size: int, *, show: bool
) -> Iterator[tuple[int, Ragged]]:
    """The ids of `batch_size` texts at a time, with the place where each batch begins.

    Args:
        texts: a column of strings.
        features: what turns them into ids; called from a second thread, never by two at a time.
        batch_size: texts in a batch; the last may have fewer.
        show: draw a progress bar on stderr.
    """
    starts = range(0, len(texts), batch_size)
    if len(starts) <= 1:  # a thread costs more than a short text
        for start in starts:
            yield start, features(texts)
        return
    with ThreadPoolExecutor(1, "rejoinder-text") as pool:
        ahead = pool.submit(features, texts.slice(0, batch_size))
        for start in _shown(starts, show):
            batch = ahead.result()
            following = start + batch_size
            if following < len(texts):
                ahead = pool.submit(features, texts.slice(following, batch_size))
            yield start, batch


def _shown(starts: range, show: bool) -> Iterable[int]:
    if not show:
        return starts
    from rich.console import Console
    from rich.progress import track

    return track(starts, "encoding", console=Console(stderr=True))
