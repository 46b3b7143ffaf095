"""Whether the words of both texts are synonyms, more general words, or the opposite."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, lower_and_higher, share
from rejoinder.inference.scoring.families.base import Family
from rejoinder.inference.scoring.lexicon import KINDS

_OPPOSITE = KINDS.index("antonym")
_SAME, _UNRELATED = 1, 0.5


def _compute(batch: PairBatch) -> list[Array]:
    best = [batch.related.max(axis=axis) for axis in (2, 1)]
    pairs = list(zip(batch.sides, best, strict=True))
    covered = [share((most * side.weights).sum(axis=1), side.weight) for side, most in pairs]
    lower, higher = lower_and_higher(*covered)
    alone = [side.weights * (most < _UNRELATED) for side, most in pairs]
    in_part = [((most > 0) & (most < _SAME)).sum(axis=1) for most in best]
    return [
        lower, higher, share(2 * lower * higher, lower + higher),
        alone[0].sum(axis=1) + alone[1].sum(axis=1),
        *lower_and_higher(*(each.max(axis=1) for each in alone)),
        in_part[0] + in_part[1], *_opposites(batch, best),
    ]  # fmt: skip


def _opposites(batch: PairBatch, best: list[Array]) -> list[Array]:
    """Returns how many words have an opposite in the other text, and the weight of these pairs.

    A word that the other text has too does not count.
    """
    opposite = batch.kinds == _OPPOSITE
    for axis, most in zip((2, 1), best, strict=True):
        opposite &= np.expand_dims(most < _SAME, axis)
    both = batch.first.weights[:, :, None] + batch.second.weights[:, None, :]
    return [opposite.any(axis=2).sum(axis=1), (both * opposite).sum(axis=(1, 2))]


MEANINGS = Family(
    "meanings",
    (
        "lower share of related words", "higher share of related words",
        "mean share of related words", "unrelated weight", "lighter unrelated word",
        "heaviest unrelated word", "related words", "opposite words", "weight of opposites",
    ),
    _compute,
)  # fmt: skip
