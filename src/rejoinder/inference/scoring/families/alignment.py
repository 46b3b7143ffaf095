"""How well each word of a text has a counterpart in the other, by the embeddings of words."""

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch, Side, lower_and_higher, share
from rejoinder.inference.scoring.families.base import Family

_FAR = 0.35
"""Cosine below which a word has no counterpart."""


def _compute(batch: PairBatch) -> list[Array]:
    nearest = batch.nearest
    pairs = list(zip(batch.sides, nearest, strict=True))
    covered = [share((near * side.weights).sum(axis=1), side.weight) for side, near in pairs]
    far = [((near < _FAR) * side.weights).sum(axis=1) for side, near in pairs]
    worst = [np.where(side.present, near, 1).min(axis=1) for side, near in pairs]
    lower, higher = lower_and_higher(*covered)
    return [
        lower, higher, share(2 * lower * higher, lower + higher),
        far[0] + far[1], np.maximum(*far), *lower_and_higher(*worst), _mean(batch),
        *_one_to_one(batch),
    ]  # fmt: skip


def _mean(batch: PairBatch) -> Array:
    """Returns how near the words of a text are to those of the other, all with all."""
    both = batch.first.present[:, :, None] & batch.second.present[:, None, :]
    whole = batch.first.lengths * batch.second.lengths
    return share((batch.alike * both).sum(axis=(1, 2)), whole)


def _one_to_one(batch: PairBatch) -> list[Array]:
    partners, cosines = batch.partners
    aligned = partners >= 0
    both = batch.first.weights + np.take_along_axis(batch.second.weights, partners.clip(0), axis=1)
    whole = batch.first.weight + batch.second.weight
    taken = np.zeros(batch.second.words.shape, np.bool_)
    pair, place = np.nonzero(aligned)
    taken[pair, partners[pair, place]] = True
    alone = [_unaligned(batch.first, aligned), _unaligned(batch.second, taken)]
    sums = [each.sum(axis=1) for each in alone]
    shares = [share(part, side.weight) for part, side in zip(sums, batch.sides, strict=True)]
    return [
        share((both * cosines * aligned).sum(axis=1), whole),
        np.log1p(aligned.sum(axis=1)).astype(np.float32),
        *lower_and_higher(*sums),
        *lower_and_higher(*(each.max(axis=1) for each in alone)),
        *lower_and_higher(*shares),
    ]


def _unaligned(side: Side, aligned: np.ndarray) -> Array:
    return np.where(aligned, np.float32(0), side.weights)


ALIGNMENT = Family(
    "alignment",
    (
        "lower cover", "higher cover", "mean cover", "weight without counterpart",
        "most weight without counterpart", "worst word", "better worst word", "mean of all words",
        "aligned weight",
        "aligned words", "lower unaligned weight", "higher unaligned weight",
        "lighter unaligned word", "heaviest unaligned word", "lower unaligned share",
        "higher unaligned share",
    ),
    _compute,
)  # fmt: skip
