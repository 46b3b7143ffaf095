"""Features of messages, and of pairs of them, that predict which message a message answers.

A piece is about a thousand messages of a channel. The `M` features of a message are its cues, turns
and times. The `P` features of a pair compare it with each of the 60 messages before it: time and
distance, who spoke between, names, words and meaning. Arrays of pairs are (P, 60, rows): candidate
c is the message 60 - c rows before, so that its values are a sliding view.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from rejoinder.encoders.layers import unit_rows
from rejoinder.protocols import Embeddings
from rejoinder.text.ragged import offsets_of

WINDOW = 60
"""Number of messages before a message that it may answer."""
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PAIRS = 37
"""Features of a pair."""
NAMES, PAIR_NAMES = 6, 11
"""The last features of a message, and the first of a pair, are about names."""
_FAR = 256
"""Number of earlier messages in which an author counts as having spoken before."""
_NEAR = 300.0
"""Seconds within which an author's messages are context of each other."""
_PAST, _FUTURE = 3, 2
"""Number of the author's messages before and after a message that are its context."""
_BLOCK = 8
_AROUND = ".,:;!?()<>\"'…*@"
_TAIL = "_-^`|0123456789"
_CUES = (
    "yes yeah yep yup no nope ok okay right sure correct ah oh true exactly",
    "thanks thank thx ty cheers great cool nice",
    "hi hello hey greetings",
    "what where when who why how which can could does do is are has anyone anybody any",
    "try use type run check look see you your",
    "i im i'm my i've me",
    "and but so or because then also",
    "it that this those these they he she there",
)
"""Words that begin English messages."""
_FIRST = {word: at for at, words in enumerate(_CUES, 1) for word in words.split()}
_THANKS = frozenset(("thanks", "thank", "thx"))


_LOGS = np.log1p(np.arange(2 * WINDOW + 2, dtype=np.float32))
_DISTANCE = np.arange(WINDOW, 0, -1)[:, None]


@dataclass(frozen=True)
class Piece:
    """Messages of a channel in their order, as arrays."""

    authors: Ints
    """(N,) a number per author; for a message without an author, a unique number below -1."""
    times: NDArray[np.float64]
    """(N,) seconds; NaN where unknown."""
    texts: list[str]
    """The texts without the names that they mention."""
    cues: Floats
    """(C, N)."""
    named: Ints
    """(2, N) the authors named in a text; -1 for none."""
    trust: Floats
    """(2, N) how certain each name is: 1 where it is addressed, as in `ann: yes`."""
    shared: tuple[Ints, Ints, Floats]
    """Rows i and j < i of messages that share a word, and its weight."""


def read_piece(
    authors: Sequence[str], times: NDArray[np.float64], texts: Sequence[str], *, names: bool = True
) -> Piece:
    """Reads the texts of messages. Without `names`, names in texts are removed and ignored."""
    codes: dict[str, int] = {}
    numbers = np.array(
        [codes.setdefault(a, len(codes)) if a else -2 - n for n, a in enumerate(authors)], np.int64
    )
    lines = [text.lower().split() for text in texts]
    said = list(chain.from_iterable(lines))
    starts = offsets_of(np.fromiter(map(len, lines), np.int64, len(lines)))
    rows = np.repeat(np.arange(len(texts)), np.diff(starts))
    vocabulary: dict[str, int] = {}
    number_of = {
        word: vocabulary.setdefault(word.strip(_AROUND), len(vocabulary))
        for word in dict.fromkeys(said)
    }
    words = np.fromiter(map(number_of.__getitem__, said), np.int64, len(said))
    aliases = _aliases(codes)
    meant = np.array([aliases.get(word, -1) for word in vocabulary], np.int64)[words]
    mentions = (meant >= 0) & (meant != numbers[rows])
    plain = list(texts)
    for row in np.unique(rows[mentions]).tolist():
        kept = ~mentions[starts[row] : starts[row + 1]]
        plain[row] = " ".join(compress(texts[row].split(), kept.tolist()))
    at = np.flatnonzero(mentions)
    sure = [
        said[place][0] == "@" or (first and said[place][-1] in ":,")
        for place, first in zip(at.tolist(), (at == starts[rows[at]]).tolist(), strict=True)
    ]
    if not names:
        at, sure = at[:0], []
    named = _named(len(texts), rows[at], meant[at], words[at], np.array(sure, np.bool_))
    words, rows = words[~mentions], rows[~mentions]
    spoken = list(vocabulary)
    return Piece(
        numbers, times, plain, _cues(plain, spoken, words, rows), *named,
        _shared(len(texts), spoken, words, rows),
    )  # fmt: skip


def _aliases(codes: dict[str, int]) -> dict[str, int]:
    """Maps words to authors: a name, its first word, or the name without digits at the end."""
    names = {name.lower(): code for name, code in codes.items()}
    short: dict[str, set[int]] = {}
    for name, code in names.items():
        for alias in (name.split()[0] if name.split() else "", name.rstrip(_TAIL)):
            if len(alias) > 2 and alias not in names:
                short.setdefault(alias, set()).add(code)
    return names | {alias: min(who) for alias, who in short.items() if len(who) == 1}


def _named(
    count: int, rows: Ints, meant: Ints, words: Ints, sure: NDArray[np.bool_]
) -> tuple[Ints, Floats]:
    """Returns the first two authors that messages name, and how certain; mentions are in `rows`."""
    who, trust = np.full((2, count), -1, np.int64), np.zeros((2, count), np.float32)
    shares = 0.9 * (1 + np.bincount(words, sure)) / (2 + np.bincount(words))
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    first = place < 2
    who[place[first], rows[first]] = meant[first]
    trust[place[first], rows[first]] = np.where(sure, 1, shares[words])[first]
    return who, trust


def _cues(texts: list[str], spoken: list[str], words: Ints, rows: Ints) -> Floats:
    count = len(texts)
    lengths = np.bincount(rows, minlength=count).astype(np.float32)
    firsts = np.zeros(count, np.int64)
    begun, first = np.unique(rows, return_index=True)
    firsts[begun] = np.array([_FIRST.get(word, 0) for word in spoken], np.int64)[words[first]]
    cues = np.arange(1, len(_CUES) + 1)[:, None] == firsts
    marks = [[mark in text for text in texts] for mark in ("?", "!", "http")]
    ends = [[text.endswith(mark) for text in texts] for mark in ("?", "..")]
    upper = [text[:1].isupper() for text in texts]
    grateful = np.array([word in _THANKS for word in spoken], np.bool_)[words]
    thanks = np.bincount(rows[grateful], minlength=count) > 0
    numbers = np.array([*marks, *ends, upper], np.float32).reshape(-1, count)
    sizes = np.stack([np.log1p(lengths) / 2, lengths < 3])
    return np.concatenate([sizes, numbers, thanks[None], cues]).astype(np.float32)


def _shared(count: int, spoken: list[str], words: Ints, rows: Ints) -> tuple[Ints, Ints, Floats]:
    """Returns pairs of messages at most 60 apart that share a word; rare words weigh more."""
    long = np.array([len(word) > 1 for word in spoken], np.bool_)[words]
    ids, rows = np.divmod(np.unique(words[long] * count + rows[long]), count)
    counts = np.bincount(ids, minlength=len(spoken))
    weight = np.log((1 + count) / (1 + counts)).astype(np.float32)
    rare = counts[ids] * 20 < max(count, 100)
    ids, rows = ids[rare], rows[rare]
    later, earlier, weights = list[Ints](), list[Ints](), list[Floats]()
    for hop in range(1, 9):
        same = (ids[hop:] == ids[:-hop]) & (rows[hop:] - rows[:-hop] <= WINDOW)
        later.append(rows[hop:][same])
        earlier.append(rows[:-hop][same])
        weights.append(weight[ids[hop:][same]])
    return np.concatenate(later), np.concatenate(earlier), np.concatenate(weights)


def hops(authors: Ints) -> tuple[Ints, Ints]:
    """Returns (N,) rows of the author's previous and next messages; -1 and N for none."""
    count = len(authors)
    order = np.argsort(authors, kind="stable")
    before, after = np.full(count, -1), np.full(count, count)
    same = authors[order[1:]] == authors[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return before, after


def _log(value: NDArray[np.generic], scale: float = 1.0) -> Floats:
    result: Floats = np.log1p(np.asarray(value, np.float32) / np.float32(scale))
    return result


def _preceding(values: NDArray[Any]) -> NDArray[Any]:
    """Returns (..., 60, N) from (..., N): the values of the 60 messages before each, 0 for none."""
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(WINDOW, 0)])
    return sliding_window_view(padded, values.shape[-1], axis=-1)[..., :WINDOW, :]


def _overlapping(rows: Embeddings, blocks: int, size: int) -> Embeddings:
    """Returns (blocks, size, D): `size` rows from the start of each block."""
    step, one = rows.strides
    return as_strided(rows, (blocks, size, rows.shape[1]), (_BLOCK * step, step, one))


def _band(rows: Embeddings, others: Embeddings, count: int) -> Floats:
    """Returns (60, N) products of the rows from 60 on with the 60 `others` before each."""
    blocks = -(-count // _BLOCK)
    before = _overlapping(others, blocks, _BLOCK + WINDOW - 1)  # larger blocks waste more
    those = rows[WINDOW : WINDOW + blocks * _BLOCK].reshape(blocks, _BLOCK, -1)
    product = those @ before.swapaxes(1, 2)
    block, step, one = product.strides
    found = as_strided(product, (WINDOW, blocks, _BLOCK), (one, block, step + one))
    return found.reshape(WINDOW, -1)[:, :count]


def _turns(authors: Ints) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Returns (60, N) each: turns of the candidate's author, distance to the next, others' turns.

    Turns are counted between candidate and message. The distance is from the message to the next
    message of the candidate's author, at most 60.
    """
    count = len(authors)
    mine = (_preceding(authors) == authors).astype(np.int8)
    between, again = np.zeros((2, WINDOW, count), np.int8)
    said, gap = np.zeros(count, np.int8), np.full(count, WINDOW, np.int8)
    for far in range(2 * WINDOW, 0, -1):
        if far <= WINDOW:
            again[-far, far:] = gap[:-far]
        gap += gap < WINDOW
        gap[:-far][authors[far:] == authors[:-far]] = 1
    for far in range(1, WINDOW + 1):
        between[-far, far:] = said[:-far]
        said[:-far] += mine[-far, far:]
    return between, again, mine[::-1].cumsum(axis=0, dtype=np.int8)[::-1] - mine


class PieceFeatures:
    """The features of a piece's messages and pairs."""

    def __init__(self, piece: Piece, embeddings: Embeddings, responses: Embeddings) -> None:
        """Prepares a piece of N messages with (N, D) embeddings."""
        self._piece = piece
        authors, times = piece.authors, piece.times
        count = len(authors)
        rows = np.arange(count)
        before, after = hops(authors)
        known = ~np.isnan(times)
        gap = np.maximum(np.diff(times, prepend=times[:1] if count else []), 0)
        gap = np.nan_to_num(gap).astype(np.float32)
        time = np.nan_to_num(times)

        self._rows = np.zeros((3, WINDOW + count + _BLOCK, embeddings.shape[1]), np.float32)
        self._rows[::2, WINDOW : WINDOW + count] = embeddings, responses
        texts, around, _ = self._rows[:, WINDOW : WINDOW + count]
        self._context(texts, around, time)

        has_before, has_after = (before >= rows - _FAR) & (before >= 0), after < count
        since = np.where(has_before, rows - before, _FAR)
        until = np.minimum(np.where(has_after, after - rows, WINDOW), WINDOW)
        since_s = np.where(has_before, time - time[before], 0)
        until_s = np.where(has_after, time[np.minimum(after, count - 1)] - time, 0)
        rate = np.clip(time - time[np.maximum(rows - 20, 0)], 0, 7200)
        named, trust = piece.named, piece.trust
        to_before = self._addressee(before, -1)
        to_after = self._addressee(after, count)
        self._codes = np.stack([authors, *named, to_before, to_after]).astype(np.int32)
        self._their_codes, self._their_trust = _preceding(self._codes), _preceding(trust)
        self._times, self._their_times = times, _preceding(times)
        later, earlier, weights = piece.shared
        self._shared = np.zeros((WINDOW, count), np.float32)
        np.add.at(self._shared, (earlier - later + WINDOW, later), weights)
        self.valid = np.add.outer(np.arange(-WINDOW, 0), rows) >= 0
        """(60, N) which candidates exist."""
        self._number = np.maximum(self.valid.sum(axis=0), 1).astype(np.float32)
        self._turns = np.stack(_turns(self._codes[0]))
        self.names = np.stack([
            trust[0], trust[1], (named[0] >= 0), (named[1] >= 0), to_before >= 0, to_after >= 0,
        ]).astype(np.float32)  # fmt: skip
        self.messages = np.concatenate([
            piece.cues,
            np.stack([
                known, has_before, _log(since) / 3, _log(np.clip(since_s, 0, 7200), 60) / 3,
                since == 1, until == 1, _log(until) / 3,
                _log(np.clip(until_s, 0, 7200), 60) / 3, _log(gap, 60) / 2,
                _log(np.append(gap[1:], 0), 60) / 2, _log(rate, 60) / 3, authors < 0,
            ]).astype(np.float32),
            self.names,
        ])  # fmt: skip

    def _context(self, rows: Embeddings, out: Embeddings, time: NDArray[np.float64]) -> None:
        """Writes (N, D) unit rows: what the author says around each message."""
        count, size = len(rows), _PAST + 1 + _FUTURE
        order = np.argsort(self._piece.authors, kind="stable")
        here = np.arange(count)[:, None]
        there = here + np.arange(-_PAST, _FUTURE + 1)
        one, other = order[here], order[np.clip(there, 0, count - 1)]
        authors = self._piece.authors
        near = (there >= 0) & (there < count) & (authors[one] == authors[other])
        near &= (abs(time[one] - time[other]) <= _NEAR) & (abs(one - other) <= WINDOW)
        # products of a few messages with the messages around them
        blocks = -(-count // _BLOCK)
        chosen = np.zeros((blocks * _BLOCK, size - 1 + _BLOCK), np.float32)
        np.put_along_axis(chosen[:count], here % _BLOCK + np.arange(size), near, axis=1)
        said = np.zeros((blocks * _BLOCK + size - 1, rows.shape[1]), np.float32)
        said[_PAST : _PAST + count] = rows[order]
        around = _overlapping(said, blocks, size - 1 + _BLOCK)
        total = chosen.reshape(blocks, _BLOCK, -1) @ around
        out[order] = unit_rows(total.reshape(-1, rows.shape[1])[:count])

    def _addressee(self, chain: Ints, end: int) -> Ints:
        """Returns (N,) the name in the author's nearest other message that has a name."""
        named = self._piece.named[0]
        found = np.full(len(chain), -1)
        at = chain.copy()
        for _ in range(4):
            inside = at != end
            safe = np.where(inside, at, 0)
            found = np.where((found < 0) & inside, named[safe], found)
            at = np.where(inside, chain[safe], end)
        return found

    def pairs(self, start: int, end: int) -> Floats:
        """Returns (P, 60, end - start) features of pairs of messages `start` to `end`.

        The first `PAIR_NAMES` are about names.
        Candidates before the first message of the piece are zeros.
        """
        own = slice(start, end)
        mine, to, _, before_i, after_i = codes = self._codes[:, own]
        theirs, to_j, other_j, before_j, after_j = self._their_codes[..., own]
        trust_i, trust_j = self._piece.trust[:, own], self._their_trust[..., own]
        same = theirs == mine
        i_names_j = np.maximum(*((codes[1:3, None] == theirs) * trust_i[:, None]))
        j_names_i = np.maximum((to_j == mine) * trust_j[0], (other_j == mine) * trust_j[1])
        between, again, mine_between = self._turns[..., own]
        elapsed = (self._times[own] - self._their_times[:, own]).astype(np.float32)
        elapsed = np.fmin(np.fmax(elapsed, 0), 7200)  # 0 for unknown times
        shared = self._shared[:, own]
        out: list[NDArray[np.generic]] = [
            i_names_j,
            trust_i[0] * (i_names_j == 0),
            j_names_i,
            trust_j[0] * (j_names_i == 0),
            (to == to_j) & (to >= 0),
            before_i == theirs,
            after_i == theirs,
            (before_j == mine) & ~same,
            (after_j == mine) & ~same,
            (before_i == to_j) & (to_j >= 0),
            (to == before_j) & (to >= 0),
            _log(elapsed, 60) / 2, _LOGS[_DISTANCE] / 2, _DISTANCE == 1, 1 / _DISTANCE, same,
            _LOGS[between], between == 0, _LOGS[mine_between], mine_between == 0,
            same & (between == 0), _LOGS[again] / 3, again < 10,
            shared / 8, (shared - shared.max(axis=0)) / 8,
        ]  # fmt: skip
        pairs = np.empty((PAIRS, WINDOW, end - start), np.float32)
        for at, values in enumerate(out):
            pairs[at] = values
        texts, around, replies = self._rows[:, start : end + WINDOW + _BLOCK]
        sides = (texts, texts), (around, around), (replies, texts), (texts, replies)
        for first, (ours, those) in enumerate(sides):
            cosines = _band(ours, those, end - start)
            mean = cosines.sum(axis=0) / self._number[own]
            spread = np.sqrt((cosines * cosines).sum(axis=0) / self._number[own] - mean**2 + 1e-4)
            found = pairs[len(out) + 3 * first :]
            np.multiply(cosines, 2, out=found[0])
            np.multiply(cosines - mean, 0.5 / spread, out=found[1])
            np.multiply(cosines - cosines.max(axis=0), 4, out=found[2])
        if start < WINDOW:
            pairs[:, ~self.valid[:, own]] = 0
        return pairs
