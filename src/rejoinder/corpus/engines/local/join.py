"""Joins the comments of a part: replies with their messages."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.engines.local.hashes import SAME_HASH, places
from rejoinder.corpus.engines.local.rows import (
    ELSEWHERE,
    GONE,
    KEPT,
    Blocks,
    CrossingError,
    Rows,
    rows_of_runs,
)
from rejoinder.corpus.reading.strings import same, sorted_runs


@dataclass(frozen=True)
class Joined:
    """The pairs of a part, sorted by thread and reply, as rows of its comments."""

    replies: NDArray[np.int64]
    """(P,) row of each reply."""
    messages: NDArray[np.int64]
    """(P,) row of each message."""
    threads: pl.Series
    """(T,) the threads of the pairs, in their order."""
    starts: NDArray[np.int64]
    """(T + 1,) first pair of each thread, and the number of pairs."""
    missing: NDArray[np.uint64]
    """Hashes of the parents of kept replies that the part lacks."""
    not_found: int
    """Number of kept replies whose parent the part lacks."""
    dropped: int
    """Number of kept replies whose parent broke a rule."""


def join(rows: Rows, blocks: Blocks, fresh: int) -> Joined:
    """Joins the comments of a part, whose strings are in `blocks`.

    The first `fresh` rows are this extraction's, the others are carried from earlier ones. Pairs of
    two carried comments are left out, and carried replies are not counted.

    Raises:
        CrossingError: two ids have the same hash, or a parent is in another thread.
    """
    replies = np.flatnonzero((rows.rule == KEPT) & rows.answers)
    parents = rows.parent[replies]
    there = np.flatnonzero(rows.rule != GONE)
    place = places(rows.id[there], parents)
    found = place >= 0
    missing, not_found = parents[~found], int((~found & (replies < fresh)).sum())
    replies, messages = replies[found], there[place[found]]
    new = (replies < fresh) | (messages < fresh)
    replies, messages = replies[new], messages[new]
    if not same(rows.chosen(blocks, "parent", replies), rows.chosen(blocks, "id", messages)):
        raise CrossingError(SAME_HASH)
    if (rows.thread[replies] != rows.thread[messages]).any():
        raise CrossingError(ELSEWHERE)
    kept = rows.rule[messages] == KEPT
    dropped = int((~kept & (replies < fresh)).sum())
    replies, messages = replies[kept], messages[kept]
    order, threads, starts = _by_thread_and_reply(rows, blocks, replies)
    return Joined(replies[order], messages[order], threads, starts, missing, not_found, dropped)


def _by_thread_and_reply(
    rows: Rows, blocks: Blocks, replies: NDArray[np.int64]
) -> tuple[NDArray[np.int64], pl.Series, NDArray[np.int64]]:
    """Returns the order of replies by thread and id, their threads, and the threads' starts.

    The starts are those of `Joined`.

    Raises:
        CrossingError: two threads have the same hash.
    """
    hashes = rows.thread[replies]
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    sizes = np.diff(np.append(first, len(hashes)))
    together, one_of_each = replies[order], replies[order[first]]
    if not same(
        rows.chosen(blocks, "thread", together),
        rows.chosen(blocks, "thread", np.repeat(one_of_each, sizes)),
    ):
        raise CrossingError(SAME_HASH)
    threads = rows.strings(blocks, "thread", one_of_each).to_polars()
    by_name = threads.arg_sort().to_numpy()
    order = order[rows_of_runs(first[by_name], sizes[by_name])]
    starts = np.append(0, np.cumsum(sizes[by_name]))
    within = sorted_runs(rows.chosen(blocks, "id", replies[order]), starts)
    return order[within], threads.gather(by_name), starts
