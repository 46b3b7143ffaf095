"""`P@N` and `P@N of K`: how often the true response is among the first N of K, from 0 to 1.

`P@N` without K has 100 candidates. The prediction of an item is the rank of its true response, from
1.
"""

import re

from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, MetricPattern, compare_correct
from rejoinder.measures import Floats, Indices

CUTOFFS = (1, 3, 10)
"""N of the scores that a result has."""
USUAL_CANDIDATES = 100
"""K of the field's P@N; any other number of candidates is part of the name."""


def precision_name(n: int, candidates: int) -> str:
    """Returns the name of a score.

    >>> precision_name(1, 100), precision_name(3, 40)
    ('P@1', 'P@3 of 40')
    """
    return f"P@{n}" if candidates == USUAL_CANDIDATES else f"P@{n} of {candidates}"


def precision_at(ranks: Indices | Floats, n: int) -> float:
    """Returns P@N with a right answer per item: the share of (N,) ranks that are at most `n`."""
    return float((ranks <= n).mean())


def _build(match: re.Match[str]) -> Metric:
    main, n = match[0], int(match[1])
    cutoffs = {main: n, **{f"P@{cutoff}{match[2] or ''}": cutoff for cutoff in CUTOFFS}}

    def recompute(items: Items) -> dict[str, float]:
        return {name: precision_at(items.predictions, cutoff) for name, cutoff in cutoffs.items()}

    return Metric(
        name=main,
        recompute=recompute,
        errors=lambda items: items.predictions - 1,
        test=lambda first, second, seed, _draws: compare_correct(
            first.predictions <= n, second.predictions <= n, seed, percent=False
        ),
    )


METRICS = (MetricPattern("P@N", r"P@(\d+)( of \d+)?", _build),)
