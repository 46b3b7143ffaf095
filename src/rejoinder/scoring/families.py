"""The families of features that a scorer is fitted on: a function and a `Family` for each."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import commonprefix

import numpy as np

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.measures import Indices, angular_similarity
from rejoinder.registry import Registry
from rejoinder.scoring.batch import (
    KINDS,
    PairBatch,
    Side,
    common_subsequence,
    lower_and_higher,
    share,
)


@dataclass(frozen=True)
class Family:
    """A group of related features of pairs of texts. They ignore the order of the two texts."""

    name: str
    features: tuple[str, ...]
    """Names of the features, unique among all families."""
    compute: Callable[[PairBatch], Sequence[Array]]
    """Returns a finite (N,) array for each feature."""

    def __call__(self, batch: PairBatch) -> Array:
        """Returns (N, F) float32 features."""
        return np.array(self.compute(batch), np.float32).reshape(-1, len(batch)).T


def _embeddings(batch: PairBatch) -> list[Array]:
    cosine = _cosine(batch.first.embeddings, batch.second.embeddings)
    sums = [
        unit_rows((side.weights[:, None, :] @ rows)[:, 0])
        for side, rows in zip(batch.sides, batch.rows, strict=True)
    ]
    return [cosine, np.asarray(angular_similarity(cosine), np.float32), _cosine(*sums)]


def _cosine(first: Array, second: Array) -> Array:
    return np.asarray(np.clip(np.einsum("nd,nd->n", first, second), -1, 1))


EMBEDDINGS = Family("embeddings", ("cosine", "angle", "weighted cosine"), _embeddings)


_FAR = 0.35
"""Cosine below which a word has no counterpart."""


def _alignment(batch: PairBatch) -> list[Array]:
    pairs = list(zip(batch.sides, batch.nearest, strict=True))
    far = [((near < _FAR) * side.weights).sum(axis=1) for side, near in pairs]
    worst = [np.where(side.present, near, 1).min(axis=1) for side, near in pairs]
    return [
        *_covered(batch, batch.nearest), far[0] + far[1], np.maximum(*far),
        *lower_and_higher(*worst), _mean(batch), *_one_to_one(batch),
    ]  # fmt: skip


def _covered(batch: PairBatch, near: Sequence[Array]) -> list[Array]:
    """Returns the share of each side's weight that is near the other: lower, higher and mean."""
    shares = [
        share((each * side.weights).sum(axis=1), side.weight)
        for side, each in zip(batch.sides, near, strict=True)
    ]
    lower, higher = lower_and_higher(*shares)
    return [lower, higher, share(2 * lower * higher, lower + higher)]


def _mean(batch: PairBatch) -> Array:
    """Returns the mean similarity of all words of a text with all words of the other."""
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
    alone = [
        np.where(one, np.float32(0), side.weights)
        for side, one in zip(batch.sides, (aligned, taken), strict=True)
    ]
    sums = [each.sum(axis=1) for each in alone]
    shares = [share(part, side.weight) for part, side in zip(sums, batch.sides, strict=True)]
    return [
        share((both * cosines * aligned).sum(axis=1), whole),
        np.log1p(aligned.sum(axis=1)).astype(np.float32),
        *lower_and_higher(*sums),
        *lower_and_higher(*(each.max(axis=1) for each in alone)),
        *lower_and_higher(*shares),
    ]


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
    _alignment,
)  # fmt: skip


_OPPOSITE = KINDS.index("antonym")
_SAME, _UNRELATED = 1, 0.5


def _meanings(batch: PairBatch) -> list[Array]:
    best = [batch.related.max(axis=axis) for axis in (2, 1)]
    alone = [
        side.weights * (most < _UNRELATED) for side, most in zip(batch.sides, best, strict=True)
    ]
    in_part = [((most > 0) & (most < _SAME)).sum(axis=1) for most in best]
    return [
        *_covered(batch, best), alone[0].sum(axis=1) + alone[1].sum(axis=1),
        *lower_and_higher(*(each.max(axis=1) for each in alone)),
        in_part[0] + in_part[1], *_opposites(batch, best),
    ]  # fmt: skip


def _opposites(batch: PairBatch, best: list[Array]) -> list[Array]:
    """Returns how many words have an opposite in the other text, and the weight of these pairs.

    Words that both texts have don't count.
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
    _meanings,
)  # fmt: skip


_SHARED = 0.9
"""Least similarity of two words that count as the same."""


def _remainders(batch: PairBatch) -> list[Array]:
    counts, sums, means = [], [], []
    for side, rows, axis in zip(batch.sides, batch.rows, (2, 1), strict=True):
        left = side.present & (batch.alike.max(axis=axis) < _SHARED)
        some = np.where(left, side.weights, 0)
        both = np.stack([some, side.weights], axis=1) @ rows
        counts.append(left.sum(axis=1).astype(np.float32))
        sums.append((both[:, 0], both[:, 1]))
        means.append(both[:, 1] / np.maximum(side.weight, 1e-6)[:, None])
    (rest, whole), (other_rest, other_whole) = sums
    fewer, more = lower_and_higher(*counts)
    lengths = [np.linalg.norm(each, axis=1) for each in (rest, other_rest, whole, other_whole)]
    near = share(np.einsum("nd,nd->n", rest, other_rest), lengths[0] * lengths[1])
    return [
        np.where(more == 0, np.float32(1), near), fewer > 0, fewer, more,
        np.linalg.norm(means[0] - means[1], axis=1),
        share(np.linalg.norm(rest - other_rest, axis=1), lengths[2] + lengths[3]),
    ]  # fmt: skip


REMAINDERS = Family(
    "remainders",
    (
        "cosine of the remainders", "both have a remainder", "fewer words left", "more words left",
        "distance of mean words", "distance of the remainders",
    ),
    _remainders,
)  # fmt: skip


_CONTENT = np.float32(1.6)
"""Least weight of a word outside the 80 most frequent."""
_MOST = 500
"""Number of characters of a text to read."""


def _ends(batch: PairBatch) -> list[Array]:
    texts = [[text[:_MOST].lower() for text in side.texts] for side in batch.sides]
    back = [[text[::-1] for text in side] for side in texts]
    firsts = [_first(side) for side in batch.sides]
    lasts = [_last(side) for side in batch.sides]
    rows = np.arange(len(batch))
    both = np.minimum(
        batch.alike[rows, firsts[0]].max(axis=1), batch.alike[rows, :, firsts[1]].max(axis=1)
    )
    return [
        _common(*texts), _common(*back), batch.alike[rows, firsts[0], firsts[1]],
        batch.alike[rows, lasts[0], lasts[1]], both,
    ]  # fmt: skip


def _common(first: list[str], second: list[str]) -> Array:
    """Returns the share of equal characters at the beginning."""
    pairs = list(zip(first, second, strict=True))
    same = np.array([len(commonprefix(pair)) for pair in pairs], np.int64)  # noqa: RUF071
    return share(same, np.array([max(map(len, pair)) for pair in pairs], np.int64))


def _first(side: Side) -> Indices:
    """Returns (N,) int64 the position of the first content word, or of the first word."""
    return np.asarray((side.weights >= _CONTENT).argmax(axis=1))


def _last(side: Side) -> Indices:
    """Returns (N,) int64 the position of the last content word, or of the last word."""
    content = side.weights >= _CONTENT
    content |= side.present & ~content.any(axis=1, keepdims=True)
    last: Indices = content.shape[1] - 1 - content[:, ::-1].argmax(axis=1)
    return np.where(content.any(axis=1), last, 0)


ENDS = Family(
    "ends",
    (
        "same beginning", "same ending", "first content words", "last content words",
        "first content words anywhere",
    ),
    _ends,
)  # fmt: skip


def _edits(batch: PairBatch) -> list[Array]:
    longest = common_subsequence(batch.same_stem)
    lengths = [side.lengths for side in batch.sides]
    return [
        share(2 * longest, lengths[0] + lengths[1]),
        share(longest, np.minimum(*lengths)),
        *_order(batch),
        np.array([a == b for a, b in zip(*(side.texts for side in batch.sides), strict=True)]),
    ]


def _order(batch: PairBatch) -> list[Array]:
    """Returns the shares of aligned neighbours that swap places, and that stay neighbours."""
    partners, _ = batch.partners
    # move the aligned words of each text to its front, in their order
    order = np.argsort(partners < 0, axis=1, kind="stable")
    moved = np.take_along_axis(partners, order, axis=1)
    both = moved[:, 1:] >= 0
    steps = np.diff(moved, axis=1)
    count = both.sum(axis=1)
    return [share((moves & both).sum(axis=1), count) for moves in (steps < 0, steps == 1)]


EDITS = Family(
    "edits",
    (
        "common subsequence", "common subsequence of the shorter", "neighbours that change places",
        "neighbours that stay", "the same text",
    ),
    _edits,
)  # fmt: skip


def _lengths(batch: PairBatch) -> list[Array]:
    words = [side.lengths for side in batch.sides]
    shorter, longer = lower_and_higher(*words)
    return [np.log1p(shorter), np.log1p(longer), share(longer - shorter, longer)]


LENGTHS = Family("lengths", ("shorter", "longer", "difference of lengths"), _lengths)


def _numbers(batch: PairBatch) -> list[Array]:
    marks = [batch.table.numbers[side.words] for side in batch.sides]
    same = batch.same_stem & marks[0][:, :, None]
    shared = [same.any(axis=axis).sum(axis=1) for axis in (2, 1)]
    return _in_common(shared[0] + shared[1], [each.sum(axis=1) for each in marks])


def _in_common(shared: Indices, counts: list[Indices]) -> list[Array]:
    """Returns the share of things in both texts, the rest, and whether both or any have some."""
    whole = counts[0] + counts[1]
    alike = np.where(whole > 0, share(shared, whole), 1)
    return [alike, np.log1p(whole - shared), np.minimum(*counts) > 0, whole > 0]


NUMBERS = Family(
    "numbers", ("shared numbers", "other numbers", "both have numbers", "a number"), _numbers
)


def _negation(batch: PairBatch) -> list[Array]:
    counts = [batch.table.negations[side.words].sum(axis=1) for side in batch.sides]
    return [abs(counts[0] - counts[1]).clip(max=2), np.minimum(*counts).clip(max=2)]


NEGATION = Family("negation", ("other negations", "shared negations"), _negation)


_CAPITAL = re.compile(r"[^\W\d_a-z]\w+")
_ENDS = (". ", "! ", "? ")


def names_of(text: str) -> frozenset[str]:
    """Returns the names of a text in lower case.

    >>> sorted(names_of("When Anna met Bob. They talked, Carl didn't."))
    ['anna', 'bob', 'carl']
    """
    text = text[:_MOST]
    if text.isupper() or text.islower():
        return frozenset()
    return frozenset(
        match[0].lower()
        for match in _CAPITAL.finditer(text)
        if match[0][0].isupper()
        and text[match.start() - 1 : match.start()] == " "
        and text[match.start() - 2 : match.start()] not in _ENDS
    )


def _names(batch: PairBatch) -> list[Array]:
    names = [[names_of(text) for text in side.texts] for side in batch.sides]
    counts = [np.fromiter(map(len, each), np.int64, len(each)) for each in names]
    shared = np.array([len(a & b) for a, b in zip(*names, strict=True)], np.int64)
    return _in_common(2 * shared, counts)


NAMES = Family("names", ("shared names", "other names", "both have names", "a name"), _names)


FAMILIES: Registry[Family] = Registry(
    "family of features",
    {
        family.name: family
        for family in (
            EMBEDDINGS,
            ALIGNMENT,
            MEANINGS,
            REMAINDERS,
            ENDS,
            EDITS,
            LENGTHS,
            NUMBERS,
            NAMES,
            NEGATION,
        )
    },
)
"""Add a new family here, or register it with `FAMILIES.register`."""


def features_of(batch: PairBatch, families: Sequence[Family]) -> Array:
    """Returns (N, F) float32, the features of all families, one family after the other."""
    return np.concatenate([family(batch) for family in families], axis=1)
