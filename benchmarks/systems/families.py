"""Families of features that only systems of SemEval-2017 use, apart from those of the package."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from characters import CHARACTERS
from overlap import OVERLAP
from wordnet import KINDS, WordNet, content_words

from rejoinder.encoders.layers import Array
from rejoinder.scoring.batch import PairBatch, Side, share, stem
from rejoinder.scoring.families import FAMILIES, Family

Tokens = list[str]
_GAMMA = 1.0


def register(wordnet: WordNet) -> None:
    """Adds the families to those of the package, for this process."""
    kinds = [*dict.fromkeys(KINDS.values())]
    added = [
        OVERLAP,
        CHARACTERS,
        Family(
            "information", ("shared information",), lambda batch: [_information(batch, wordnet)]
        ),
        Family("bags", tuple(f"bags: {name}" for name in _DISTANCES), _bags),
        Family(
            "pooled",
            tuple(f"{pool} of rows: {name}" for pool in _POOLS for name in _DISTANCES),
            _pooled,
        ),
        Family("translation", tuple(_TRANSLATION), _translation),
        Family("sequences", ("common beginning", "common end", "common part"), _sequences),
        Family(
            "kinds",
            tuple(f"{kind}: {what}" for kind in kinds for what in ("difference", "ratio")),
            lambda batch: _kinds(batch, wordnet, kinds),
        ),
    ]
    for family in added:
        FAMILIES.register(family.name, family)


def _each(batch: PairBatch, value: Callable[[str, str], float]) -> Array:
    texts = zip(batch.first.texts, batch.second.texts, strict=True)
    return np.array([value(one, other) for one, other in texts], np.float32)


def _information(batch: PairBatch, wordnet: WordNet) -> Array:
    return _each(batch, wordnet.shared_information)


def _kinds(batch: PairBatch, wordnet: WordNet, kinds: Sequence[str]) -> list[Array]:
    """Counts words by part of speech: the difference, and the fewer by the more."""
    counts = []
    for side in batch.sides:
        found = [Counter(map(wordnet.kind, content_words(text))) for text in side.texts]
        counts.append(np.array([[each[kind] for kind in kinds] for each in found], np.float32))
    fewer, more = np.minimum(*counts), np.maximum(*counts)
    ratio = np.where(more > 0, share(fewer, more), 1)
    return [column for pair in zip((more - fewer).T, ratio.T, strict=True) for column in pair]


_DISTANCES = ("cosine", "manhattan", "euclidean", "largest", "rbf", "laplacian")


def _distances(first: Array, second: Array) -> list[Array]:
    """Returns the kernels of (N, D) rows."""
    apart = abs(first - second)
    manhattan, squares = apart.sum(axis=1), (apart**2).sum(axis=1)
    return [
        _cosine(first, second), manhattan, np.sqrt(squares), apart.max(axis=1),
        np.exp(-_GAMMA * squares), np.exp(-_GAMMA * manhattan),
    ]  # fmt: skip


def _cosine(first: Array, second: Array) -> Array:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return share((first * second).sum(axis=1), lengths)


def _bags(batch: PairBatch) -> list[Array]:
    """Compares the weighted bags of stems of each pair, each of length 1."""
    stems = [batch.table.stems[side.words] for side in batch.sides]
    both = np.concatenate(stems, axis=1)
    bags = []
    for own, side in zip(stems, batch.sides, strict=True):
        # a column for each word of either text; of those with one stem, the first
        first = (both[:, :, None] == both[:, None, :]).argmax(axis=2) == np.arange(both.shape[1])
        same = (both[:, :, None] == own[:, None, :]) & (own[:, None, :] >= 0)
        bag = (same * side.weights[:, None, :]).sum(axis=2) * first
        bags.append(share(bag, np.linalg.norm(bag, axis=1, keepdims=True)))
    return _distances(*bags)


_POOLS = ("mean", "most", "least", "weighted mean")


def _pooled(batch: PairBatch) -> list[Array]:
    """Compares the mean, the largest and the smallest values of the rows of words."""
    sides = [_pools(side, rows) for side, rows in zip(batch.sides, batch.rows, strict=True)]
    return [value for pair in zip(*sides, strict=True) for value in _distances(*pair)]


def _pools(side: Side, rows: Array) -> list[Array]:
    present = side.present[:, :, None]
    some = present.any(axis=1)
    return [
        share((rows * present).sum(axis=1), side.lengths[:, None]),
        np.where(some, np.where(present, rows, -np.inf).max(axis=1), 0),
        np.where(some, np.where(present, rows, np.inf).min(axis=1), 0),
        share((rows * side.weights[:, :, None]).sum(axis=1), side.weight[:, None]),
    ]


_TRANSLATION = ("bleu", "nist", "gtm", "word error rate", "rouge 1", "rouge 2", "rouge l", "meteor")


def _translation(batch: PairBatch) -> list[Array]:
    """Returns measures of translation and of summaries, each the mean of both directions."""
    pairs = zip(batch.first.texts, batch.second.texts, strict=True)
    words = [
        ([stem(word) for word in _tokens(a)], [stem(word) for word in _tokens(b)]) for a, b in pairs
    ]
    return [*np.array([_measures(one, other) for one, other in words], np.float32).T]


def _tokens(text: str) -> Tokens:
    plain = (word.strip('.,!?;:"()') for word in text.lower().replace("'", " ").split())
    return [word for word in plain if word]


def _measures(one: Tokens, other: Tokens) -> list[float]:
    if not one or not other:
        return [0.0] * len(_TRANSLATION)
    longest, runs = _subsequence(one, other), _runs(one, other)
    matched = _matches(one, other, 1)
    mean = 2 * matched / (len(one) + len(other))
    penalty = 0.5 * (len(runs) / matched) ** 3 if matched else 0.0
    return [
        (_bleu(one, other) + _bleu(other, one)) / 2,
        (_nist(one, other) + _nist(other, one)) / 2,
        2 * math.sqrt(sum(run**2 for run in runs)) / (len(one) + len(other)),
        _edits(one, other) / max(len(one), len(other)),
        mean,
        2 * _matches(one, other, 2) / max(len(one) + len(other) - 2, 1),
        2 * longest / (len(one) + len(other)),
        mean * (1 - penalty),
    ]


def _grams(words: Tokens, length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(length)), strict=False))


def _matches(one: Tokens, other: Tokens, length: int) -> int:
    return (_grams(one, length) & _grams(other, length)).total()


def _bleu(given: Tokens, reference: Tokens) -> float:
    """Returns BLEU of sequences of up to 4 words, each with one more match and one more try."""
    logs = 0.0
    for length in range(1, 5):
        tries = max(len(given) - length + 1, 0)
        logs += math.log((_matches(given, reference, length) + 1) / (tries + 1))
    short = min(0.0, 1 - len(reference) / len(given))
    return math.exp(logs / 4 + short)


def _nist(given: Tokens, reference: Tokens) -> float:
    """Returns the mean over lengths of matches, the rarer a sequence in the reference the more."""
    total, words = 0.0, len(reference)
    for length in range(1, 4):
        shorter = _grams(reference, length - 1) if length > 1 else None
        shared, own = _grams(given, length) & _grams(reference, length), _grams(reference, length)
        worth = sum(
            count * math.log2(1 + (words if shorter is None else shorter[gram[:-1]]) / own[gram])
            for gram, count in shared.items()
        )
        total += worth / max(len(given) - length + 1, 1)
    return total / 3


def _edits(one: Tokens, other: Tokens) -> int:
    row = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, second in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (word != second)),
            )
    return row[-1]


def _subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, second in enumerate(other, 1):
            before, row[place] = (
                row[place],
                max(row[place], row[place - 1], before + 1 if word == second else 0),
            )
    return row[-1]


def _runs(one: Tokens, other: Tokens) -> list[int]:
    """Returns the lengths of runs of words that both have, the longest taken first."""
    found, a, b = list[int](), list[str | None](one), list[str | None](other)
    while (best := _longest(a, b))[0]:
        length, left, right = best
        found.append(length)
        a[left : left + length] = [None] * length
        b[right : right + length] = [None] * length
    return found


def _longest(one: Sequence[str | None], other: Sequence[str | None]) -> tuple[int, int, int]:
    """Returns the length of the longest common run, and where it begins in both."""
    best, row = (0, 0, 0), [0] * (len(other) + 1)
    for left, word in enumerate(one):
        before = 0
        for right, second in enumerate(other):
            length = before + 1 if word is not None and word == second else 0
            before, row[right + 1] = row[right + 1], length
            if length > best[0]:
                best = (length, left - length + 1, right - length + 1)
    return best


def _sequences(batch: PairBatch) -> list[Array]:
    """Returns the common beginning, end and longest part of the words, by the longer text."""
    found = []
    for one, other in zip(batch.first.texts, batch.second.texts, strict=True):
        a, b = _tokens(one), _tokens(other)
        most = max(len(a), len(b), 1)
        ends = [_same(a, b), _same(a[::-1], b[::-1])]
        found.append([each / most for each in (*ends, _longest(a, b)[0])])
    return [*np.array(found, np.float32).T]


def _same(one: Tokens, other: Tokens) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count
