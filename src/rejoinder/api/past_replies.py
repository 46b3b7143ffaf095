"""`PastReplies`: the messages of a collection whose replies are known, and which are held out."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.api.collection import Collection
from rejoinder.corpus.core_text import core_of
from rejoinder.corpus.manifest import FILE as PAIRS
from rejoinder.errors import InputError
from rejoinder.index.where import Conditions
from rejoinder.index.words import words_of
from rejoinder.inference.suggestions import Replies, denies, without_names
from rejoinder.io.files.hashed import blake2b_number
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

HISTORY, FIT, CHECK = range(3)
"""Parts of the past: what is always known; held out to fit confidences; to tell what they do."""
_LEAST_THREADS = 50
_LEAST_PAIRS = 50
"""Held-out pairs of each split of a folder of pairs; with fewer, threads are drawn anew."""


@dataclass(frozen=True)
class PastReplies:
    """P pairs of a message and a reply to it."""

    collection: Collection
    asked: Indices
    """(P,) int64: the message of each pair, as its index in the collection."""
    replied: Indices
    """(P,) int64: its reply."""
    parts: NDArray[np.int8]
    """(P,) int8: HISTORY, FIT or CHECK. A thread is in one part."""
    rows: Embeddings
    """(P, D) float32, the embeddings of the messages."""
    replies: Replies
    """The replies."""

    def __len__(self) -> int:
        return len(self.asked)

    def texts(self, pairs: Indices) -> list[str]:
        """Returns the replies of pairs."""
        return [self.collection.texts[row] for row in self.replied[pairs].tolist()]

    def held_out(self, part: int, most: int) -> Indices:
        """Returns at most `most` of the messages of a part, from all over it."""
        messages = np.unique(self.asked[self.parts == part])
        return messages[:: -(-len(messages) // most) or 1]

    def judged(
        self, messages: Indices, given: Replies, texts: list[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compares M replies with the true ones to M messages, of which there may be several.

        Returns:
            (M,) bool whether a reply says nearly the same as a true one, and (M,) bool whether it
            also does so in the same words.
        """
        order = np.argsort(self.asked, kind="stable")
        begins, ends = (
            np.searchsorted(self.asked[order], messages, side).tolist()
            for side in ("left", "right")
        )
        right = np.zeros((2, len(messages)), np.bool_)
        for at, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            true = order[begin:end]
            right[0, at] = given.at(np.array([at])).same(self.replies.at(true)).any()
            if right[0, at]:
                right[1, at] = words_of(texts[at]) in map(words_of, self.texts(true))
        return right[0], right[1]


def replies_of(made: Collection, rows: Indices) -> Replies:
    """Returns what is compared of texts of a collection.

    Texts without names and numbers are not encoded again.
    """
    texts = [made.texts[row] for row in rows.tolist()]
    found = made.embeddings[rows]
    named = [at for at, text in enumerate(texts) if without_names(text) != text]
    authors = [str(made.about[rows[at]].get("author", "")) for at in named]
    cores = [core_of(texts[at], author) for at, author in zip(named, authors, strict=True)]
    found[named] = made.encoder.encode([without_names(core) for core in cores])
    return Replies(found, denies(texts))


def past_replies(made: Collection, conditions: Conditions) -> PastReplies:
    """Returns the replies of a collection that meet conditions, with the messages they answer.

    Replies by the author of the message are left out.

    Raises:
        InputError: there is none, or the collection is an index of responses.
    """
    if made.of_responses:
        raise InputError(
            f"{made.name} is an index of responses (--response), in which no message is found; "
            "build it without, or name the pairs or the export."
        )
    authors = made.column("author")
    linked = np.flatnonzero(made.answered >= 0).tolist()
    kept = [
        row
        for row in linked
        if conditions.meets(made.about[row])
        and (authors[row] is None or authors[row] != authors[made.answered[row]])
    ]
    if linked and not kept:
        values = [f"{name}={one}" for name, some in conditions.values.items() for one in some]
        raise InputError(
            f"{made.name} has no reply with {', '.join(values)} to a message by somebody else."
            if values
            else f"{made.name}: no message answers one by another author in this time."
        )
    replied = np.array(kept, np.int64)
    asked = made.answered[replied]
    parts = _parts(made, asked, replied)
    rows, replies = made.embeddings[asked], replies_of(made, replied)
    return PastReplies(made, asked, replied, parts, rows, replies)


def _parts(made: Collection, asked: Indices, replied: Indices) -> NDArray[np.int8]:
    """Returns the part of each pair.

    Those of a folder of pairs are its splits, as a model may have been fine-tuned on the others.
    Elsewhere a tenth of the threads is FIT and a tenth CHECK. Few threads are too long to be held
    out as a whole, so the last tenths of the pairs are.
    """
    threads = _threads(made, replied)
    if (Path(made.name or ".") / PAIRS).is_file() and made.name:
        known = _splits(Path(made.name))
        parts = np.array([known.get(thread, HISTORY) for thread in threads], np.int8)
        if min((parts == FIT).sum(), (parts == CHECK).sum()) >= _LEAST_PAIRS:
            return parts
    if len({*threads}) < _LEAST_THREADS:
        tenths = np.arange(len(asked)) * 10 // max(len(asked), 1)
        return np.select([tenths == 8, tenths == 9], [FIT, CHECK], HISTORY).astype(np.int8)
    drawn = {thread: blake2b_number(thread.encode()) % 10 for thread in {*threads}}
    places = {0: FIT, 1: CHECK}
    return np.array([places.get(drawn[thread], HISTORY) for thread in threads], np.int8)


def _threads(made: Collection, rows: Indices) -> list[str]:
    """Returns the threads of the first messages of what these answer, or the ids of those.

    In some exports the replies to one message are of different threads.
    """
    first = np.where(made.answered >= 0, made.answered, np.arange(len(made)))
    for _ in range(len(made).bit_length()):  # each step goes twice as far
        first = first[first]
    threads = made.column("thread")
    return [str(threads[row] or made.ids[row]) for row in first[rows].tolist()]


def _splits(folder: Path) -> dict[str, int]:
    """Returns the parts of the threads of a folder of pairs that are held out."""
    from rejoinder.corpus.shards import open_pairs  # needs Polars

    pairs = open_pairs(folder)
    return {
        thread: part
        for split, part in (("dev", FIT), ("test", CHECK))
        for thread in pairs.frame(split, ["thread_id"])["thread_id"].to_list()
    }
