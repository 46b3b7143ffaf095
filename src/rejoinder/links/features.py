"""What tells which earlier message a message answers: numbers of messages, and of pairs of them.

A piece of a channel is some thousand messages. Numbers of a message (`M`) are its cues, its turns
and its times; numbers of a pair (`P`) compare it with each of the 60 messages before it: time and
distance, who spoke between, names, words and meaning. Arrays of pairs are (P, rows, 60), column c
being the message 60 - c before, so that all that belongs to the candidate is a sliding view.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from rejoinder.protocols import Embeddings

WINDOW = 60
"""Messages before a message that it may answer."""
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PAIRS = 37
"""Numbers of a pair."""
NAMES, PAIR_NAMES = 6, 11
"""The last numbers of a message, and the first of a pair, are those of names."""
_FAR = 256
"""Messages within which an author counts as having spoken before."""
_NEAR = 300.0
"""Seconds within which messages of one author are his context."""
_PAST, _FUTURE = 3, 2
"""Messages of the author before and after a message that are its context."""
_BLOCK = 16
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
_DISTANCE = np.arange(WINDOW, 0, -1)


@dataclass(frozen=True)
class Piece:
    """Messages of a channel in their order, as arrays."""

    authors: Ints
    """(N,) a number for each author; one below -1 for each message without."""
    times: NDArray[np.float64]
    """(N,) seconds; NaN where unknown."""
    texts: list[str]
    """Without the names that they mention."""
    cues: Floats
    """(C, N)."""
    named: Ints
    """(2, N) the authors named in a text; -1 for none."""
    trust: Floats
    """(2, N) how sure each is a name: 1 where it is addressed, as in `ann: yes`."""
    shared: tuple[Ints, Ints, Floats]
    """Rows i and j < i of messages that share a word, and what it weighs."""


def read_piece(
    authors: Sequence[str], times: NDArray[np.float64], texts: Sequence[str], *, names: bool = True
) -> Piece:
    """Reads what messages say. Without `names`, those in texts are taken out and not looked at."""
    codes: dict[str, int] = {}
    numbers = np.array(
        [codes.setdefault(a, len(codes)) if a else -2 - n for n, a in enumerate(authors)], np.int64
    )
    aliases = _aliases(codes)
    found: list[list[tuple[int, str, bool]]] = []
    plain: list[str] = []
    words_of: list[list[str]] = []
    for text, own in zip(texts, numbers.tolist(), strict=True):
        words = [word.strip(_AROUND) for word in text.lower().split()]
        mentions: list[tuple[int, str, bool]] = []
        if not aliases.keys().isdisjoint(words):
            parts = text.split()
            for place, word in enumerate(words):
                code = aliases.get(word)
                if code is not None and code != own:
                    part = parts[place]
                    addressed = part[0] == "@" or (place == 0 and part[-1] in ":,")
                    mentions.append((code, word, addressed))
                    words[place] = parts[place] = ""
            if mentions:
                text = " ".join(filter(None, parts))
                words = [word for part, word in zip(parts, words, strict=True) if part]
        found.append(mentions)
        plain.append(text)
        words_of.append(words)
    return Piece(
        numbers, times, plain, _cues(plain, words_of), *_named(found, names), _shared(words_of)
    )


def _aliases(codes: dict[str, int]) -> dict[str, int]:
    """Returns who is meant by a word: a name, its first word, or it without digits at the end."""
    names = {name.lower(): code for name, code in codes.items()}
    short: dict[str, set[int]] = {}
    for name, code in names.items():
        for alias in (name.split()[0] if name.split() else "", name.rstrip(_TAIL)):
            if len(alias) > 2 and alias not in names:
                short.setdefault(alias, set()).add(code)
    return names | {alias: min(who) for alias, who in short.items() if len(who) == 1}


def _named(found: list[list[tuple[int, str, bool]]], names: bool) -> tuple[Ints, Floats]:
    said, addressed = Counter[str](), Counter[str]()
    for mentions in found:
        for _, name, sure in mentions:
            said[name] += 1
            addressed[name] += sure
    who = np.full((2, len(found)), -1, np.int64)
    trust = np.zeros((2, len(found)), np.float32)
    for row, mentions in enumerate(found if names else ()):
        for at, (code, name, sure) in enumerate(mentions[:2]):
            who[at, row] = code
            trust[at, row] = 1.0 if sure else 0.9 * (1 + addressed[name]) / (2 + said[name])
    return who, trust


def _cues(texts: list[str], words_of: list[list[str]]) -> Floats:
    count = len(texts)
    lengths = np.fromiter(map(len, words_of), np.float32, count)
    firsts = [_FIRST.get(words[0], 0) if words else 0 for words in words_of]
    cues = np.arange(1, len(_CUES) + 1)[:, None] == np.array(firsts, np.int64)
    marks = [[mark in text for text in texts] for mark in ("?", "!", "http")]
    ends = [[text.endswith(mark) for text in texts] for mark in ("?", "..")]
    upper = [text[:1].isupper() for text in texts]
    thanks = [not _THANKS.isdisjoint(words) for words in words_of]
    numbers = np.array([*marks, *ends, upper, thanks], np.float32).reshape(-1, count)
    sizes = np.stack([np.log1p(lengths) / 2, lengths < 3])
    return np.concatenate([sizes, numbers, cues]).astype(np.float32)


def _shared(words_of: list[list[str]]) -> tuple[Ints, Ints, Floats]:
    """Returns pairs of messages at most 60 apart that share a word, rare words weighing more."""
    codes: dict[str, int] = {}
    ids, rows = list[int](), list[int]()
    for row, words in enumerate(words_of):
        unique = dict.fromkeys(words)
        ids += [codes.setdefault(word, len(codes)) for word in unique if len(word) > 1]
        rows += [row] * (len(ids) - len(rows))
    ids_, rows_ = np.array(ids, np.int64), np.array(rows, np.int64)
    order = np.lexsort((rows_, ids_))
    ids_, rows_ = ids_[order], rows_[order]
    counts = np.bincount(ids_, minlength=len(codes))
    weight = np.log((1 + len(words_of)) / (1 + counts)).astype(np.float32)
    rare = counts[ids_] * 20 < max(len(words_of), 100)
    ids_, rows_ = ids_[rare], rows_[rare]
    later, earlier, weights = list[Ints](), list[Ints](), list[Floats]()
    for hop in range(1, 9):
        same = (ids_[hop:] == ids_[:-hop]) & (rows_[hop:] - rows_[:-hop] <= WINDOW)
        later.append(rows_[hop:][same])
        earlier.append(rows_[:-hop][same])
        weights.append(weight[ids_[hop:][same]])
    return np.concatenate(later), np.concatenate(earlier), np.concatenate(weights)


def hops(authors: Ints) -> tuple[Ints, Ints]:
    """Returns (N,) the rows of the same author's messages before and after; -1 and N for none."""
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


def _band(rows: Embeddings, others: Embeddings) -> Floats:
    """Returns (N, 60) products of N rows with the 60 of the others from the same place on."""
    found = np.empty((len(rows), WINDOW), np.float32)
    for start in range(0, len(rows), _BLOCK):  # of a larger one, more is outside the band
        some = rows[start : start + _BLOCK]
        product = some @ others[start : start + len(some) + WINDOW - 1].T
        step, one = product.strides
        found[start : start + len(some)] = as_strided(
            product, (len(some), WINDOW), (step + one, one)
        )
    return found


class PieceFeatures:
    """The numbers of a piece's messages and pairs."""

    def __init__(self, piece: Piece, embeddings: Embeddings, responses: Embeddings) -> None:
        """Prepares a piece of N messages with (N, D) embeddings."""
        self._piece = piece
        authors, times = piece.authors, piece.times
        count = self.count = len(authors)
        rows = np.arange(count)
        before, after = hops(authors)
        self._before = before
        known = ~np.isnan(times)
        gap = np.diff(times, prepend=times[:1] if count else [])
        self._gap = np.nan_to_num(np.maximum(gap, 0)).astype(np.float32)
        time = np.nan_to_num(times)

        near = self._context(embeddings, before, after, time)
        self._rows = [np.pad(one, ((WINDOW, 0), (0, 0))) for one in (embeddings, near, responses)]

        has_before, has_after = (before >= rows - _FAR) & (before >= 0), after < count
        since = np.where(has_before, rows - before, _FAR)
        until = np.minimum(np.where(has_after, after - rows, WINDOW), WINDOW)
        since_s = np.where(has_before, time - time[before], 0)
        until_s = np.where(has_after, time[np.minimum(after, count - 1)] - time, 0)
        rate = np.clip(time - time[np.maximum(rows - 20, 0)], 0, 7200)
        named, trust = piece.named, piece.trust
        to_before = self._addressee(before, -1)
        to_after = self._addressee(after, count)
        self._to_before, self._to_after = to_before, to_after
        self.names = np.stack([
            trust[0], trust[1], (named[0] >= 0), (named[1] >= 0), to_before >= 0, to_after >= 0,
        ]).astype(np.float32)  # fmt: skip
        self.messages = np.concatenate([
            piece.cues,
            np.stack([
                known, has_before, _log(since) / 3, _log(np.clip(since_s, 0, 7200), 60) / 3,
                since == 1, until == 1, _log(until) / 3,
                _log(np.clip(until_s, 0, 7200), 60) / 3, _log(self._gap, 60) / 2,
                _log(np.append(self._gap[1:], 0), 60) / 2, _log(rate, 60) / 3, authors < 0,
            ]).astype(np.float32),
            self.names,
        ])  # fmt: skip

    def _context(
        self, rows: Embeddings, before: Ints, after: Ints, time: NDArray[np.float64]
    ) -> Embeddings:
        """Returns (N, D) unit rows: what an author says around each of his messages."""
        total, count = rows.copy(), len(rows)
        here = np.arange(count)
        for chain, most in ((before, _PAST), (after, _FUTURE)):
            at = here
            for _ in range(most):
                inside = (at >= 0) & (at < count)
                at = np.where(inside, chain[np.where(inside, at, 0)], at)
                inside = (at >= 0) & (at < count)
                safe = np.where(inside, at, 0)
                inside &= (abs(time[safe] - time) <= _NEAR) & (abs(safe - here) <= WINDOW)
                there = np.flatnonzero(inside)
                total[there] += rows[safe[there]]
        norms = np.sqrt(np.einsum("nd,nd->n", total, total))[:, None]
        total /= np.maximum(norms, np.float32(1e-9))
        return total

    def _addressee(self, chain: Ints, end: int) -> Ints:
        """Returns (N,) whom the author names in the nearest other message that names somebody."""
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
        """Returns (P, end - start, 60): each message from `start` to `end` with those before it.

        The first `PAIR_NAMES` are those of names.
        Rows before the piece's first are zeros.
        """
        piece, size = self._piece, end - start
        rows = np.arange(start, end)[:, None]
        low = start - WINDOW
        earlier_rows = np.maximum(np.arange(low, end - 1), 0)
        """The candidates' rows; those before the piece are the first, and left out by `valid`."""

        def band(values: NDArray[Any]) -> NDArray[Any]:
            return sliding_window_view(values[..., earlier_rows], WINDOW, axis=-1)

        def own(values: NDArray[Any]) -> NDArray[Any]:
            return values[start:end, None]

        column = np.arange(low, end - 1)
        place = sliding_window_view(column, WINDOW)
        valid = place >= 0
        authors, named, trust = piece.authors, piece.named, piece.trust
        theirs, mine = band(authors), own(authors)
        to_j, to_i = band(named), named[:, start:end, None]
        trust_j, trust_i = band(trust), trust[:, start:end, None]
        same = theirs == mine
        i_names_j = np.maximum(*((to_i == theirs) * trust_i))
        j_names_i = np.maximum(*((to_j == mine) * trust_j))
        out: list[NDArray[np.generic]] = [
            i_names_j,
            trust_i[0] * (i_names_j == 0),
            j_names_i,
            trust_j[0] * (j_names_i == 0),
            (to_i[0] == to_j[0]) & (to_i[0] >= 0),
            own(self._to_before) == theirs,
            own(self._to_after) == theirs,
            (band(self._to_before) == mine) & ~same,
            (band(self._to_after) == mine) & ~same,
            (own(self._to_before) == to_j[0]) & (to_j[0] >= 0),
            (to_i[0] == band(self._to_before)) & (to_i[0] >= 0),
        ]
        # who spoke between, and who speaks afterwards
        first, last = max(low, 0), min(end + WINDOW, self.count)
        local, codes = np.unique(authors[first:last], return_inverse=True)
        said = np.zeros((last - first + 1, len(local)), np.int16)
        said[np.arange(1, last - first + 1), codes] = 1
        said = said.cumsum(axis=0, dtype=np.int16)
        upcoming = np.full((last - first + 1, len(local)), last + WINDOW, np.int32)
        upcoming[np.arange(last - first), codes] = np.arange(first, last)
        upcoming = np.minimum.accumulate(upcoming[::-1], axis=0)[::-1]
        who = codes[sliding_window_view(np.maximum(column - first, 0), WINDOW)]
        here = rows - first
        up_to = said[np.maximum(place - first, 0) + 1, who]
        between = np.where(valid, said[here, who] - up_to, 0)
        me = codes[start - first : end - first, None]
        mine_between = np.where(
            valid, said[here, me] - said[np.maximum(place - first, 0) + 1, me], 0
        )
        again = np.minimum(upcoming[here + 1, who] - rows, WINDOW)
        elapsed = np.zeros((size, WINDOW), np.float32)
        with np.errstate(invalid="ignore"):
            elapsed[:] = np.clip(own(piece.times) - band(piece.times), 0, 7200)
        elapsed = np.nan_to_num(elapsed)
        out += [
            _log(elapsed, 60) / 2, _LOGS[_DISTANCE] / 2, _DISTANCE == 1, 1 / _DISTANCE, same,
            _LOGS[between], between == 0, _LOGS[mine_between], mine_between == 0,
            same & (between == 0), _LOGS[again] / 3, again < 10,
        ]  # fmt: skip
        shared = np.zeros((size, WINDOW), np.float32)
        later, earlier, weights = piece.shared
        inside = (later >= start) & (later < end)
        later, earlier, weights = later[inside], earlier[inside], weights[inside]
        np.add.at(shared, (later - start, earlier - later + WINDOW), weights)
        out += [shared / 8, (shared - shared.max(axis=1, keepdims=True)) / 8]
        texts, around, replies = self._rows
        for mine_, theirs_ in (texts, texts), (around, around), (replies, texts), (texts, replies):
            cosines = _band(mine_[start + WINDOW : end + WINDOW], theirs_[start : end + WINDOW - 1])
            number = np.maximum(valid.sum(axis=1, keepdims=True), 1)
            mean = cosines.sum(axis=1, keepdims=True) / number
            spread = np.sqrt((cosines**2).sum(axis=1, keepdims=True) / number - mean**2 + 1e-4)
            out += [
                2 * cosines,
                (cosines - mean) / spread / 2,
                4 * (cosines - cosines.max(axis=1, keepdims=True)),
            ]
        pairs = np.empty((PAIRS, size, WINDOW), np.float32)
        for at, values in enumerate(out):
            pairs[at] = values
        if low < 0:
            pairs[:, ~valid] = 0
        return pairs
