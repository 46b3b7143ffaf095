"""`PastReplies`: the messages of a collection with known replies, and which pairs are held out.

For an index, a file in its folder keeps which message each reply answers, and how suggestions did
on held-out threads. The file is used as long as `index.json`, which has the hashes of all texts
and of the model, is unchanged.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder.conversations.collection import Collection, Model, WholeIndex
from rejoinder.conversations.suggestions import Confidence, Replies, Tried, denies, without_names
from rejoinder.corpus.core_text import core_of
from rejoinder.corpus.manifest import FILE as PAIRS
from rejoinder.errors import InputError, RejoinderError
from rejoinder.index.files import FILE as INDEX
from rejoinder.index.folder import TextIndex
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import blake2b_number, sha256_of_file, sha256_of_tensors
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import FOUND, language_to_stem, languages_in
from rejoinder.text.normalize import words_of

HISTORY, FIT, CHECK = range(3)
"""Parts of the past: always known; held out to fit confidences; held out to test them."""
_TOLD_BY = 2_000
"""Number of replies from which the languages are detected."""
_LEAST_THREADS = 50
_LEAST_PAIRS = 50
"""Least held-out pairs in each split of a folder of pairs; with fewer, threads are drawn again."""


Messages = Collection | WholeIndex
"""Messages to suggest replies of."""


@dataclass(frozen=True)
class PastReplies:
    """P pairs of a message and a reply to it."""

    collection: Messages
    asked: Indices
    """(P,) int64: the message of each pair, as its index in the collection."""
    replied: Indices
    """(P,) int64: its reply, also as an index in the collection."""
    parts: NDArray[np.int8]
    """(P,) int8: HISTORY, FIT or CHECK. All pairs of a thread are in one part."""

    @cached_property
    def replies(self) -> "KnownReplies":
        """The replies in the form in which they are compared."""
        return KnownReplies(self.collection, self.replied)

    @cached_property
    def _by_message(self) -> tuple[Indices, Indices]:
        """The pairs in the order of their messages, and where the pairs of each message begin."""
        counts = np.bincount(self.asked, minlength=len(self.collection))
        return np.argsort(self.asked, kind="stable"), np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def _answered(self) -> NDArray[np.bool_]:
        """(N,) bool of the collection: the messages of the pairs."""
        return self._messages_of(self.asked)

    def _messages_of(self, asked: Indices) -> NDArray[np.bool_]:
        found = np.zeros(len(self.collection), np.bool_)
        found[asked] = True
        return found

    def of(self, messages: Indices) -> Indices:
        """Returns the pairs of messages, message by message."""
        order, begins = self._by_message
        spans = [range(begins[row], begins[row + 1]) for row in messages.tolist()]
        return order[np.fromiter(chain.from_iterable(spans), np.int64)]

    def nearest(
        self, queries: Embeddings, most: int, known: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[Indices, Embeddings]]:
        """Yields for each query the pairs whose messages are nearest to it, and the cosines.

        Args:
            queries: (Q, D) float32, unit or zero rows.
            most: Number of pairs.
            known: (P,) bool, pairs to search; None means all.
        """
        wanted = self._answered if known is None else self._messages_of(self.asked[known])
        _, begins = self._by_message
        for messages, cosines in self.collection.nearest(queries, most, wanted):
            pairs = self.of(messages)
            alike = np.repeat(cosines, begins[messages + 1] - begins[messages])
            kept = slice(None) if known is None else known[pairs]
            yield pairs[kept][:most], alike[kept][:most]

    @cached_property
    def _has_languages(self) -> bool:
        """Whether the replies are in more than one language."""
        some = np.arange(len(self))[:: -(-len(self) // _TOLD_BY) or 1]
        shares = languages_in(self.texts(some))
        return sum(share >= FOUND for share in shares.values()) > 1

    def foreign(self, message: str, pairs: Indices) -> NDArray[np.bool_]:
        """Returns (K,) bool: replies that are surely in another language than a message."""
        if not (own := language_to_stem([message])) or not self._has_languages:
            return np.zeros(len(pairs), np.bool_)
        found = (_language_of(text) not in {own, ""} for text in self.texts(pairs))
        return np.fromiter(found, np.bool_, len(pairs))

    def only(self, wanted: NDArray[np.bool_]) -> "PastReplies":
        """Returns the pairs whose replies are `wanted`, (N,) bool of the collection."""
        kept = wanted[self.replied]
        return PastReplies(self.collection, self.asked[kept], self.replied[kept], self.parts[kept])

    def __len__(self) -> int:
        return len(self.asked)

    def texts(self, pairs: Indices) -> list[str]:
        """Returns the replies of pairs."""
        return [self.collection.texts[row] for row in self.replied[pairs].tolist()]

    def held_out(self, part: int, most: int) -> Indices:
        """Returns at most `most` messages of a part, spread evenly over it."""
        messages = np.unique(self.asked[self.parts == part])
        return messages[:: -(-len(messages) // most) or 1]

    def judged(
        self, messages: Indices, given: Replies, texts: list[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compares M replies with the true replies to M messages, of which there may be several.

        Returns:
            (M,) bool: whether a reply says nearly the same as a true one, and (M,) bool: whether it
            also does so in the same words.
        """
        self.replies.prepare(self.of(messages))
        right = np.zeros((2, len(messages)), np.bool_)
        for at in range(len(messages)):
            true = self.of(messages[at : at + 1])
            right[0, at] = given.at(np.array([at])).same(self.replies.at(true)).any()
            if right[0, at]:
                right[1, at] = words_of(texts[at]) in map(words_of, self.texts(true))
        return right[0], right[1]


_language_of = lru_cache(1 << 16)(lambda text: language_to_stem([text]))


class KnownReplies:
    """Replies of P pairs in the form in which they are compared; computed on first use."""

    def __init__(self, made: Messages, rows: Indices) -> None:
        """Prepares for the texts of a collection at (P,) `rows`."""
        self._made, self._rows = made, rows
        self._slots = np.full(len(rows), -1, np.int64)
        """Position of each pair in the computed replies; -1: not computed yet."""
        self._count = 0
        self._known = Replies(np.empty((0, made.encoder.dim), np.float32), np.empty(0, np.bool_))

    def prepare(self, pairs: Indices) -> None:
        """Computes some pairs at once, which is faster than one by one."""
        new = np.unique(pairs[self._slots[pairs] < 0])
        if not len(new):
            return
        begin, end = self._count, self._count + len(new)
        if end > len(self._known.rows):
            self._known = _with_room(self._known, 2 * end)
        made = replies_of(self._made, self._rows[new])
        self._known.rows[begin:end], self._known.denies[begin:end] = made.rows, made.denies
        self._slots[new], self._count = np.arange(begin, end), end

    def at(self, pairs: Indices) -> Replies:
        """Returns the comparable form of the replies of some pairs."""
        self.prepare(pairs)
        return self._known.at(self._slots[pairs])


def _with_room(known: Replies, room: int) -> Replies:
    """Returns replies with room for more, which grows with the requests, not with the past."""
    rows = np.empty((room, known.rows.shape[1]), np.float32)
    rows[: len(known.rows)] = known.rows
    return Replies(rows, np.append(known.denies, np.zeros(room - len(known.rows), np.bool_)))


def replies_of(made: Messages, rows: Indices) -> Replies:
    """Returns texts of a collection in the form in which replies are compared.

    Texts without names and numbers are not encoded again.
    """
    texts = [made.texts[row] for row in rows.tolist()]
    found = made.rows(rows)
    named = [at for at, text in enumerate(texts) if without_names(text) != text]
    authors = [str(made.about[rows[at]].get("author", "")) for at in named]
    cores = [core_of(texts[at], author) for at, author in zip(named, authors, strict=True)]
    found[named] = made.encoder.encode([without_names(core) for core in cores])
    return Replies(found, denies(texts))


def past_replies(made: Collection) -> PastReplies:
    """Returns the replies of a collection with the messages they answer, if any do.

    Replies by the author of the message are left out, and in a thread, replies by its starter:
    customers say thanks, or answer an agent's question.

    Raises:
        InputError: the collection is an index of responses.
    """
    if made.of_responses:
        raise InputError(
            f"{made.name} is an index of responses (`response`); name the pairs or the export."
        )
    replied = np.flatnonzero(made.answered >= 0)
    replied = replied[by_others(made, replied, made.answered[replied])]
    firsts, names = _first_of(made), made.column("thread")
    # in some exports the replies to one message are of different threads
    threads = [str(names[row] or made.ids[row]) for row in firsts[replied].tolist()]
    past = PastReplies(made, made.answered[replied], replied, _parts(made, threads))
    outside = np.array([not name for name in names], np.bool_)
    return past.only(outside | by_others(made, np.arange(len(made)), firsts))


def by_others(made: Collection, rows: Indices, those: Indices) -> NDArray[np.bool_]:
    """Returns (K,) bool: which of K messages have another author than K other messages."""
    authors = (
        (made.about[one].get("author"), made.about[other].get("author"))
        for one, other in zip(rows.tolist(), those.tolist(), strict=True)
    )
    return np.array([mine is None or mine != theirs for mine, theirs in authors], np.bool_)


def _parts(made: Collection, threads: list[str]) -> NDArray[np.int8]:
    """Returns the part of each pair, by the thread of the first message that led to it.

    A folder of pairs keeps its splits, as a model may have been fine-tuned on the train split.
    Otherwise a tenth of the threads is FIT and a tenth CHECK. Few threads are too long to hold out
    completely, so the last tenths of the pairs are used.
    """
    if (Path(made.name or ".") / PAIRS).is_file() and made.name:
        known = _splits(Path(made.name))
        parts = np.array([known.get(thread, HISTORY) for thread in threads], np.int8)
        if min((parts == FIT).sum(), (parts == CHECK).sum()) >= _LEAST_PAIRS:
            return parts
    if len({*threads}) < _LEAST_THREADS:
        tenths = np.arange(len(threads)) * 10 // max(len(threads), 1)
        return np.select([tenths == 8, tenths == 9], [FIT, CHECK], HISTORY).astype(np.int8)
    drawn = {thread: blake2b_number(thread.encode()) % 10 for thread in {*threads}}
    places = {0: FIT, 1: CHECK}
    return np.array([places.get(drawn[thread], HISTORY) for thread in threads], np.int8)


def _first_of(made: Collection) -> Indices:
    """Returns the first message of each one's chain of answers; or the message itself."""
    first = np.where(made.answered >= 0, made.answered, np.arange(len(made)))
    for _ in range(len(made).bit_length()):  # each step doubles the distance
        first = first[first]
    return first


def _splits(folder: Path) -> dict[str, int]:
    """Returns the parts of the held-out threads of a folder of pairs."""
    from rejoinder.corpus.writer import open_pairs  # needs Polars

    pairs = open_pairs(folder)
    return {
        thread: part
        for split, part in (("dev", FIT), ("test", CHECK))
        for thread in pairs.frame(split, ["thread_id"])["thread_id"].to_list()
    }


FILE = "suggest.safetensors"
_TRIED = ("chances", "right", "same_words")
_FORMAT_VERSION = 2
"""Also raised when the test of suggestions changes."""


def keep(index: Path, past: PastReplies, tried: Tried | None) -> None:
    """Writes the past of an index, unless its folder can't be written.

    `tried` is None if too few messages could be held out.
    """
    tensors: dict[str, NDArray[Any]] = {
        "asked": past.asked.astype(np.int32),
        "replied": past.replied.astype(np.int32),
        "parts": past.parts,
    }
    facts: dict[str, Any] = {}
    if tried is not None:
        tensors |= {name: getattr(tried, name) for name in _TRIED}
        facts = {"confidence": asdict(tried.confidence), "fitted_on": tried.fitted_on}
    facts |= _stamp(index, tensors)
    with suppress(RejoinderError):  # if it fails, it is computed again the next time
        write_bytes(index / FILE, save(tensors, {"facts": json.dumps(facts)}))


def read_kept(
    index: Path, encoder: Model = None, threads: int | None = None
) -> tuple[PastReplies, Tried | None] | None:
    """Returns what `keep` wrote; None if it did not, or if the index has changed since.

    Raises:
        InputError: the index is damaged.
    """
    try:
        with safe_open(index / FILE, "np") as file:
            facts = json.loads(file.metadata()["facts"])
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not _stamp(index, found).items() <= facts.items():
            return None
        asked, replied = (found[name].astype(np.int64) for name in ("asked", "replied"))
        parts, tried = found["parts"], None
        if "confidence" in facts:
            confidence = Confidence(**facts["confidence"])
            tried = Tried(confidence, facts["fitted_on"], *(found[name] for name in _TRIED))
    except UNREADABLE:
        return None
    return PastReplies(WholeIndex(TextIndex(index), encoder, threads), asked, replied, parts), tried


def _stamp(index: Path, tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Returns what must be unchanged for the file to be used."""
    return {
        "format_version": _FORMAT_VERSION,
        "index": sha256_of_file(index / INDEX),
        "sha256": sha256_of_tensors(tensors),
    }
