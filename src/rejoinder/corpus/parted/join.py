"""Joins the comments of a part: replies with their messages."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.parted.rows import ELSEWHERE, GONE, KEPT, Blocks, CrossingError, Rows
from rejoinder.corpus.strings import same


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
    order = np.argsort(rows.id)
    if (rows.rule == GONE).any():
        order = order[rows.rule[order] != GONE]
    hashes = rows.id[order]
    replies = np.flatnonzero((rows.rule == KEPT) & rows.answers)
    parents = rows.parent[replies]
    place = np.searchsorted(hashes, parents)
    place[place == len(hashes)] = 0
    found = hashes[place] == parents if len(hashes) else np.zeros(0, np.bool_)
    missing, not_found = parents[~found], int((~found & (replies < fresh)).sum())
    replies, messages = replies[found], order[place[found]]
    new = (replies < fresh) | (messages < fresh)
    replies, messages = replies[new], messages[new]
    if not same(rows[replies].strings(blocks, "parent"), rows[messages].strings(blocks, "id")):
        raise CrossingError("two ids have the same hash")
    if (rows.thread[replies] != rows.thread[messages]).any():
        raise CrossingError(ELSEWHERE)
    kept = rows.rule[messages] == KEPT
    dropped = int((~kept & (replies < fresh)).sum())
    replies, messages = replies[kept], messages[kept]
    below = rows[replies]
    keys = pl.DataFrame(
        {
            "thread": below.strings(blocks, "thread").to_polars(),
            "reply": below.strings(blocks, "id").to_polars(),
        }
    )
    keys = keys.with_row_index("row").sort("thread", "reply")
    by_output = keys.get_column("row").to_numpy()
    threads = keys.get_column("thread")
    first = (threads != threads.shift(1)).fill_null(True).to_numpy()
    starts = np.flatnonzero(first)
    return Joined(
        replies[by_output],
        messages[by_output],
        threads.gather(starts),
        np.append(starts, len(threads)),
        missing,
        not_found,
        dropped,
    )
