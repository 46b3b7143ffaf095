"""MAP, AvgRec and MRR of ranked lists, by the definitions of SemEval-2016 task 3's scorer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError

CUTOFF = 10
"""Places of a list that count."""

Flags = NDArray[np.bool_]


def ranked(scores: NDArray[np.float64], relevant: Flags) -> Flags:
    """(N,) whether each place of the list is relevant, best score first, ties in the order given.

    The official scorer sorts stably: a system that gives all the same score keeps the order of
    the file.
    """
    return relevant[np.argsort(-scores, kind="stable")]


def average_precision(flags: Flags) -> float:
    """Mean of the precision at each relevant place among the first ten; 0 where there is none.

    The mean is over the relevant ones that are among these ten, not over all.

    >>> round(average_precision(np.array([True, False, True])), 4)
    0.8333
    """
    flags = flags[:CUTOFF]
    if not flags.any():
        return 0.0
    places = np.flatnonzero(flags) + 1
    return float((np.arange(1, len(places) + 1) / places).mean())


def reciprocal_rank(flags: Flags) -> float:
    """One over the place of the first relevant one among the first ten, 0 without one."""
    places = np.flatnonzero(flags[:CUTOFF])
    return float(1 / (places[0] + 1)) if len(places) else 0.0


def average_recall(lists: Sequence[Flags]) -> float:
    """Share of the relevant ones that could be, and are, among the first k; mean over k = 1 to 10.

    All lists are pooled: a query counts as often as it has relevant questions.
    """
    found, possible = np.zeros(CUTOFF), np.zeros(CUTOFF)
    for flags in lists:
        top = np.pad(flags[:CUTOFF], (0, max(0, CUTOFF - len(flags))))
        found += np.cumsum(top)
        possible += np.minimum(np.arange(1, CUTOFF + 1), flags.sum())
    return float((found / possible).mean())


def official_scores(lists: Sequence[Flags]) -> dict[str, float]:
    """MAP, AvgRec and MRR in percent. A query without a relevant one counts, with 0.

    Raises:
        InputError: no list has a relevant one.
    """
    if not any(flags.any() for flags in lists):
        raise InputError("no question is relevant to any query: nothing can be ranked right.")
    return {
        "map": 100 * float(np.mean([average_precision(flags) for flags in lists])),
        "avg_rec": 100 * average_recall(lists),
        "mrr": 100 * float(np.mean([reciprocal_rank(flags) for flags in lists])),
    }
