"""Groups of rows around kept ones, from pairs of rows that are near each other.

A group does not chain: each of its rows is near the kept one, not merely near another of the group.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.inference.near_pairs import NearPairs
from rejoinder.measures import Floats, Indices

_OWN = 5
"""How often a row counts in its own sum. With 1, `Yes yes yes.` was kept for 2,000 times `Yes.`"""


@dataclass(frozen=True)
class Kept:
    """What becomes of N rows."""

    heads: Indices
    """(N,) int64: the row that is kept for each; its own index for a kept one."""
    scores: Array
    """(N,) float32: the cosine with it; 1 for a kept one."""


def group_pairs(
    pairs: NearPairs, threshold: float, weights: NDArray[np.integer] | None = None
) -> Kept:
    """Chooses the rows to keep, and for each other row the kept one that it is nearest to.

    The row with the most near ones is kept first: each counts by how far its cosine is above the
    threshold, and the row itself as five, so that what is repeated is kept rather than what
    resembles much. A row is dropped if its cosine with a kept one is at least `threshold`, so no
    two kept rows are that near. `weights` (N,) counts a row as several equal ones.
    """
    near = pairs.where(pairs.scores >= np.float32(threshold))
    rows = np.concatenate([near.first, near.second])
    others = np.concatenate([near.second, near.first])
    scores = np.concatenate([near.scores, near.scores])
    weight = np.ones(pairs.rows) if weights is None else weights.astype(np.float64)
    above = (scores - threshold) / max(1 - threshold, 1e-6)
    sums = _OWN * weight + np.bincount(rows, weight[others] * above, pairs.rows)
    by_row = np.argsort(rows, kind="stable")
    begins = np.searchsorted(rows[by_row], np.arange(pairs.rows + 1)).tolist()
    is_head = _heads(np.unique(rows), others[by_row], begins, sums)
    # of the heads that a row is near, the nearest, of several the one with the largest sum
    wanted = np.flatnonzero(is_head[others] & ~is_head[rows])
    wanted = wanted[
        np.lexsort((others[wanted], -sums[others[wanted]], -scores[wanted], rows[wanted]))
    ]
    dropped, places = np.unique(rows[wanted], return_index=True)
    heads, nearness = np.arange(pairs.rows), np.ones(pairs.rows, np.float32)
    heads[dropped] = others[wanted[places]]
    nearness[dropped] = scores[wanted[places]]
    return Kept(heads, nearness)


def _heads(
    rows: NDArray[np.integer], others: NDArray[np.integer], begins: list[int], sums: Floats
) -> NDArray[np.bool_]:
    """Returns which rows are kept; those without a near one are."""
    covered = np.zeros(len(sums), np.bool_)
    for row in rows[np.lexsort((rows, -sums[rows]))].tolist():
        if not covered[row]:
            covered[others[begins[row] : begins[row + 1]]] = True
    return ~covered
