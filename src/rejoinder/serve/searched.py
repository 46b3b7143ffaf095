"""What a server searches: texts in memory, and messages with those that they answer.

What `rejoinder explore` found in the conversations of an index, ready to be sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rejoinder.conversations.suggestions import Suggested
from rejoinder.corpus.texts import Entry
from rejoinder.index.hits import IndexHit
from rejoinder.index.words import matches
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import first_indices
from rejoinder.inference.search import Hit, nearest_rows
from rejoinder.inference.why import can_explain, word_shares
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings

Hits = list[list[Hit]] | list[list[IndexHit]]
"""What was found for each query."""


class TextList:
    """Texts in memory, and their embeddings."""

    def __init__(self, entries: Sequence[Entry], encoder: SentenceEncoder) -> None:
        self._entries = entries
        encoded = [entry.encoded for entry in entries]
        # equal texts get equal embeddings
        self._embeddings = encoder.encode(encoded)[first_indices(encoded)]
        self._texts = {entry.id: entry.text for entry in entries if entry.about}

    def __len__(self) -> int:
        return len(self._entries)

    def nearest(self, queries: Embeddings, top_k: int) -> Hits:
        """Returns for each query the nearest texts, best first."""
        rows, scores = (list_.tolist() for list_ in nearest_rows(queries, self._embeddings, top_k))
        hits = [
            [(row, self._entries[row], score) for row, score in zip(*found, strict=True)]
            for found in zip(rows, scores, strict=True)
        ]
        if not self._texts:
            return [[Hit(row, score, one.text) for row, one, score in found] for found in hits]
        messages = [
            [IndexHit(one.id or "", score, one.text, one.about) for _, one, score in found]
            for found in hits
        ]
        return with_answered(messages, self._find)

    def _find(self, ids: Sequence[str]) -> list[str | None]:
        return [self._texts.get(one) for one in ids]


@dataclass(frozen=True)
class Why:
    """Why a text was found."""

    matches: list[tuple[int, int]]
    """Where words of the query are in it: indices of first characters, and after the last."""
    cosine: float | None
    """Null if the model can't be explained by words."""
    words: list[tuple[int, int, float]]
    """What each word of it adds to the cosine: where it is in the text, and how much."""


@dataclass(frozen=True)
class MessageHit(IndexHit):
    """A text of an index, or a message, that was found."""

    answered: str | None = None
    """The message that it answers; null if there is none, or the server does not have it."""


@dataclass(frozen=True)
class ExplainedHit(MessageHit):
    """A text of an index that was found, and why."""

    why: Why | None = None


Find = Callable[[Sequence[str]], list[str | None]]
"""Gives the texts with some ids, None where there is none."""


def with_answered(found: list[list[IndexHit]], find: Find) -> list[list[IndexHit]]:
    """Returns hits with what they answer."""
    answered = iter(find([hit.about.get("answers", "") for hits in found for hit in hits]))
    return [[MessageHit(**vars(hit), answered=next(answered)) for hit in hits] for hits in found]


def with_why(
    queries: Sequence[str], found: list[list[IndexHit]], model: ModelContents
) -> list[list[IndexHit]]:
    """Returns hits with the words that they were found for."""
    explained = list[list[IndexHit]]()
    for query, hits in zip(queries, found, strict=True):
        whys = _whys(model, query, [hit.text for hit in hits])
        explained.append(
            [ExplainedHit(**vars(hit), why=why) for hit, why in zip(hits, whys, strict=True)]
        )
    return explained


def _whys(model: ModelContents, query: str, texts: list[str]) -> list[Why]:
    places = [matches(query, text) for text in texts]
    if not can_explain(model):
        return [Why(each, None, []) for each in places]
    return [
        Why(each, round(cosine, 6), [(start, stop, round(one, 4)) for start, stop, one in words])
        for each, (cosine, words) in zip(places, word_shares(model, query, texts), strict=True)
    ]


@dataclass(frozen=True)
class Explored:
    """Answers of the routes of `serve.routes.explored`; None where something was not looked for."""

    name: str | None
    """What is explored, as the page calls it."""
    command: str
    """The index, as a command names it."""
    asked: bytes | None = None
    """JSON of the answer of `/asked`."""
    topics: bytes | None = None
    """JSON of the answer of `/topics`."""
    points: bytes = b""
    """The answer of `/points`."""
    ids: Sequence[str] = field(default=(), repr=False)
    """Ids of the messages of the points."""

    suggest: Callable[[str, int, str | None], Suggested] | None = None
    """Suggests so many replies to a message, by an author if one is given."""

    @property
    def found(self) -> list[str]:
        """Names of what was looked for."""
        return [name for name in ("asked", "topics", "suggest") if getattr(self, name) is not None]
