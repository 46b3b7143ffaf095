"""The cosine from which two texts mean the same: from labelled pairs, or from a rate of errors."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.measures import Floats

Basis = Literal["given", "examples", "false positives", "default"]

LEAST, MOST, DEFAULT = 0.85, 0.97, 0.9
"""Least and largest threshold that a rate gives, and the one where none can be estimated.

Of pairs from .85 on, 74 % of Quora's mean the same, 94 % of Twitter's and of medical questions,
96 % of PARADE's; below, texts have a topic in common."""
_QUANTILES = (0.1, 0.4)
"""Quantiles of the nearest cosines by which those of texts without a duplicate are fitted: at most
60 % of the texts may have one."""
_CROWDED, _NEAR = 0.01, 0.95
"""Where so many texts without a duplicate would have one as near as this, the fit is one of texts
with duplicates."""
_FEWEST_TEXTS = 100
_FEWEST = 1_000
"""Neighbouring pairs that are needed to say how near they are."""


@dataclass(frozen=True)
class Estimate:
    """A threshold, and what may be expected of it."""

    threshold: float
    """Cosine from which texts mean the same."""
    basis: Basis
    """Where it comes from: `given`, `examples`, `false positives`, or `default`: there are few
    texts, or most have a near one, so that chance can't be told apart."""
    by_chance: float | None = None
    """Estimated share of texts without a duplicate that have one by chance at the threshold."""
    neighbours: float | None = None
    """Share of messages that are as near to the message before them in the conversation."""
    precision: float | None = None
    """Share of the examples from the threshold on that mean the same."""
    recall: float | None = None
    """Share of the examples that mean the same which are from the threshold on."""
    f1: float | None = None


def threshold_of_examples(scores: Floats, alike: NDArray[np.bool_], least: float) -> Estimate:
    """Returns the threshold with the highest F1 on labelled pairs, between two of their scores.

    >>> alike = np.array([True, True, False])
    >>> round(threshold_of_examples(np.array([0.9, 0.8, 0.6]), alike, 0.5).threshold, 4)
    0.7

    Args:
        scores: (P,) cosines.
        alike: (P,) bool: whether the texts of a pair mean the same; some do.
        least: The least threshold.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(alike[order])
    below = np.maximum(np.append(ranked[1:], least), least)
    f1 = np.where(ranked > below, 2 * right / (np.arange(len(order)) + 1 + right[-1]), 0)
    best = int(f1.argmax())
    threshold = round(float(ranked[best] + below[best]) / 2, 4) if f1[best] else least
    chosen = scores >= threshold
    precision, recall = (
        int((chosen & alike).sum()) / max(int(x.sum()), 1) for x in (chosen, alike)
    )
    measured = (round(value, 4) for value in (precision, recall, float(f1[best])))
    return Estimate(threshold, "examples", None, None, *measured)


def threshold_of_rate(
    nearest: Array, neighbours: Array, rate: float, most: float = MOST
) -> Estimate:
    """Returns the least threshold at which a share of at most `rate` is taken for the same.

    Both of texts without a duplicate, by chance, and of messages and those before them.

    The cosine of a text without a duplicate with its nearest other text is taken to be normal. Its
    mean and deviation follow from the lower part of the nearest cosines (an empirical null, Efron
    2004), because the upper part are texts with a duplicate.

    Args:
        nearest: (S,) cosines of sampled texts with their nearest others.
        neighbours: (M,) cosines of messages with those before them; few do not count.
        rate: Above 0, below 1.
        most: The largest threshold.
    """
    wanted = [LEAST]
    if len(neighbours) >= _FEWEST:
        wanted.append(float(np.quantile(neighbours, 1 - rate)))
    if is_crowded(nearest):
        basis: Basis = "default"
        wanted.append(DEFAULT)
    else:
        basis = "false positives"
        wanted.append(_null(nearest).inv_cdf(1 - rate))
    return expected_at(round(min(max(wanted), most), 4), basis, nearest, neighbours)


def expected_at(threshold: float, basis: Basis, nearest: Array, neighbours: Array) -> Estimate:
    """Returns what may be expected of a threshold; see `threshold_of_rate`."""
    chance = None if is_crowded(nearest) else round(1 - _null(nearest).cdf(threshold), 6)
    known = len(neighbours) >= _FEWEST
    near = round(float((neighbours >= threshold).mean()), 6) if known else None
    return Estimate(threshold, basis, chance, near)


def is_crowded(nearest: Array) -> bool:
    """Returns whether texts without a duplicate can't be told apart: they are few."""
    return len(nearest) < _FEWEST_TEXTS or _null(nearest).inv_cdf(1 - _CROWDED) > _NEAR


def _null(nearest: Array) -> NormalDist:
    low, high = np.quantile(nearest.astype(np.float64), _QUANTILES).tolist()
    unit = [NormalDist().inv_cdf(share) for share in _QUANTILES]
    deviation = (high - low) / (unit[1] - unit[0])
    return NormalDist(high - deviation * unit[1], max(deviation, 1e-6))
