"""MAP, AvgRec and MRR of ranked lists, as defined by the scorer of SemEval-2016 task 3."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.measures import Floats

CUTOFF = 10
"""Only the first ten of a list count."""

Flags = NDArray[np.bool_]
"""(N,) whether each entry of a list is relevant, best score first."""


def ranked(scores: Floats, relevant: Flags) -> Flags:
    """Returns `relevant` in the order of (N,) scores, highest first; ties keep their order.

    The official scorer sorts stably: a system that gives all entries the same score keeps the order
    of the file.
    """
    return relevant[np.argsort(-scores, kind="stable")]


def average_precision(flags: Flags) -> float:
    """Returns the mean precision at each relevant entry among the first ten, or 0 without one.

    The mean is over the relevant entries among these ten, not over all.

    >>> round(average_precision(np.array([True, False, True])), 4)
    0.8333
    """
    flags = flags[:CUTOFF]
    if not flags.any():
        return 0.0
    positions = np.flatnonzero(flags) + 1
    return float((np.arange(1, len(positions) + 1) / positions).mean())


def reciprocal_rank(flags: Flags) -> float:
    """Returns 1 / rank of the first relevant entry among the first ten, or 0 without one."""
    positions = np.flatnonzero(flags[:CUTOFF])
    return float(1 / (positions[0] + 1)) if len(positions) else 0.0


def average_recall(lists: Sequence[Flags]) -> float:
    """Returns the mean over k = 1 to 10 of the recall at k, relative to the best possible order.

    All lists are pooled, so a query counts in proportion to its relevant questions.
    """
    retrieved, possible = np.zeros(CUTOFF), np.zeros(CUTOFF)
    for flags in lists:
        top = np.pad(flags[:CUTOFF], (0, max(0, CUTOFF - len(flags))))
        retrieved += np.cumsum(top)
        possible += np.minimum(np.arange(1, CUTOFF + 1), flags.sum())
    return float((retrieved / possible).mean())


def official_scores(lists: Sequence[Flags]) -> dict[str, float]:
    """Returns MAP, AvgRec and MRR in percent. A query without a relevant question counts as 0.

    Raises:
        InputError: no list has a relevant entry.
    """
    if not any(flags.any() for flags in lists):
        raise InputError("no question is relevant to any query: nothing can be ranked right.")
    return {
        "map": 100 * float(np.mean([average_precision(flags) for flags in lists])),
        "avg_rec": 100 * average_recall(lists),
        "mrr": 100 * float(np.mean([reciprocal_rank(flags) for flags in lists])),
    }
