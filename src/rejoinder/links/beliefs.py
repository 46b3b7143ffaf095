"""Features for the second look at each message, computed from the probabilities of the first.

The first look gives the probability that a message answers each earlier one. From these follow
the threads, who has been answered already, and who answers later.
"""

import numpy as np
from numpy.typing import NDArray

from rejoinder.links.features import WINDOW, Floats, Ints, hops

CANDIDATES = 16
"""Number of earlier messages, the most probable by the first look, that the second compares."""
BELIEFS = 4
"""Features of a message."""


def best_candidates(shares: Floats) -> Ints:
    """Returns the (N, 16) columns of the most probable messages in (N, 61), in column order."""
    best = np.argpartition(-shares[:, :WINDOW], CANDIDATES, axis=1)[:, :CANDIDATES]
    return np.sort(best, axis=1)


class Beliefs:
    """Features of a piece's messages and pairs, from a first look at it."""

    def __init__(self, authors: Ints, shares: Floats) -> None:
        """Prepares (N, 61) probabilities of the answered messages; the last means none."""
        count = len(authors)
        here = np.arange(count)
        self._authors, self._shares = authors, shares
        self._before, self._after = hops(authors)
        padded = np.concatenate([shares, np.zeros((WINDOW, WINDOW + 1), np.float32)])
        later = np.arange(1, WINDOW + 1)
        self._replies = padded[here[:, None] + later, WINDOW - later]
        """(N, 60) probabilities that a later message, by its distance, answers this one."""
        self._answered = self._replies.cumsum(axis=1)
        best = shares.argmax(axis=1)
        parents = np.where(best == WINDOW, -1, here + best - WINDOW)
        roots = np.where(parents < 0, here, parents)
        while (roots != roots[roots]).any():
            roots = roots[roots]
        self._roots = roots
        _, self._next = hops(self._roots)
        order = np.argsort(self._roots, kind="stable")
        sizes = np.bincount(self._roots, minlength=count)
        rank = np.empty(count, np.int64)
        rank[order] = here - np.repeat(sizes.cumsum() - sizes, sizes)
        self._sure = shares.max(axis=1)
        self._parents = np.where(parents >= 0, authors[np.maximum(parents, 0)], -1)
        """Authors of the answered messages; -1 for none, which no author has."""
        first = self._replies.argmax(axis=1)
        rest = self._replies.copy()
        rest[here, first] = 0
        self._responders = [
            (values[here, at], authors[np.minimum(here + at + 1, count - 1)])
            for values, at in ((self._replies, first), (rest, rest.argmax(axis=1)))
        ]
        self.messages: Floats = np.stack([
            shares[:, WINDOW], self._sure, np.minimum(self._answered[:, -1], 4), np.log1p(rank) / 3,
        ]).astype(np.float32)  # fmt: skip

    def pairs(self, start: int, columns: Ints) -> Floats:
        """Returns (E, 16, rows) features of rows from `start`, with candidates in `columns`."""
        rows = np.arange(start, start + len(columns))
        places = np.maximum(rows - WINDOW + columns.T, 0)
        since = np.minimum(rows - places, WINDOW)
        shares = self._shares[rows, columns.T]
        roots, authors = self._roots[places], self._authors[places]
        before, after = self._before[rows], self._after[rows]
        again = np.where(before >= 0, self._before[np.maximum(before, 0)], -1)
        last = len(self._authors) - 1
        answered = self._answered
        up_to = np.where(since > 1, answered[places, np.maximum(since - 2, 0)], 0)
        (one, first), (two, second) = self._responders
        one, two, first, second = one[rows], two[rows], first[rows], second[rows]
        mine = self._authors[rows]

        def replied(row: NDArray[np.int64]) -> Floats:
            """The probability that the author's message in `row` answers the candidate."""
            apart = row - places
            known = (apart > 0) & (apart <= WINDOW) & (row <= last)
            return np.where(known, self._replies[places, np.clip(apart, 1, WINDOW) - 1], 0)

        out = [
            np.log(shares + np.float32(1e-4)) / 4,
            shares,
            ((roots[:, None] == roots) * shares).sum(axis=1),
            up_to,
            answered[places, -1] - answered[places, since - 1],
            (before >= 0) & (self._roots[np.maximum(before, 0)] == roots),
            (again >= 0) & (self._roots[np.maximum(again, 0)] == roots),
            (after <= last) & (self._roots[np.minimum(after, last)] == roots),
            self._next[places] >= rows,
            (self._parents[places] == mine) * self._sure[places],
            one * (first == authors) + two * (second == authors),
            one * ((first != authors) & (first != mine))
            + two * ((second != authors) & (second != mine)),
            replied(before),
            replied(after),
        ]
        return np.stack(out).astype(np.float32)
