"""`Service`: the state and the calls that routes share. One worker does all computing.

A server searches texts in memory or an index, and has the results of `rejoinder explore` for it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from rejoinder.conversations.suggestions import Suggested
from rejoinder.corpus.texts import Entry
from rejoinder.errors import ConditionError, InputError
from rejoinder.index.folder import TextIndex
from rejoinder.index.hits import IndexHit
from rejoinder.index.indexing import Index
from rejoinder.index.words import matches
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import first_indices
from rejoinder.inference.neighbours import nearest_rows
from rejoinder.inference.search import Hit
from rejoinder.inference.why import word_shares
from rejoinder.io.files.claims import read_one_state, stamp_of
from rejoinder.measures import unit_rows
from rejoinder.models.card import training_rows
from rejoinder.models.config import RESPONSES
from rejoinder.models.folder import ModelContents
from rejoinder.protocols import Embeddings
from rejoinder.scoring.scorer import HIGHEST, Scorer
from rejoinder.serve.batching import Batcher, Encode, Metrics
from rejoinder.serve.errors import RequestError, refused
from rejoinder.serve.sent_files import MOST_CHARACTERS, FileReader
from rejoinder.serve.server import ServerSettings
from rejoinder.text.features import Token, read_tokens

_LOG = logging.getLogger("uvicorn.error")
_MOST_HITS = 100_000
"""Largest number of hits in an answer, over all queries."""
_EXPLAINED = 100
"""Number of plain hits that take as long as one hit with an explanation."""
_MOST_TOKENS = 100_000
"""Largest number of tokens in an answer; each is a JSON object."""


T = TypeVar("T")
Hits = list[list[Hit]] | list[list[IndexHit]]
"""The hits of each query."""
_Find = Callable[[int], Hits]
"""Returns this many of the best texts for each query."""


class Service:
    """An encoder with a queue, and the texts to search."""

    def __init__(
        self,
        model: ModelContents,
        settings: ServerSettings,
        texts: Sequence[Entry] = (),
        index: TextIndex | None = None,
        threads: int | None = None,
        scorer: Path | None = None,
    ) -> None:
        """Starts the worker. `texts` are encoded for `search`, unless there is an `index`.

        Raises:
            InputError: `threads` is out of range, a text is not a string, or the index was made
                with another model.
            ModelError: the encoder kind is unknown, or the scorer is damaged or for another model.
            MissingExtraError: the encoder needs a package that is not installed.
        """
        self.settings, self.model = settings, model
        self.encoder = SentenceEncoder(model, threads=threads)
        self.scorer = None if scorer is None else Scorer(scorer, self.encoder, threads=threads)
        """Scorer that `/rerank` uses; None means the cosine."""
        self.description = self.encoder.describe()
        self.name: str = self.description["name"]
        training = self.description["training"].get("config", {}).get("training", {})
        self._nested = bool(training.get("nested_dims"))
        self.ranks = RESPONSES in model.heads
        rows = training_rows(self.description["training"])
        self.language = "en" if any(row.licence.known for row in rows) else None
        self.index = None if index is None else Index(index.folder, self.encoder)
        self._texts = TextList(texts, self.encoder)
        self.explored: Callable[[], Explored] | None = None
        """Results of `rejoinder explore` for the index."""
        self.metrics = Metrics(lambda: self.batcher.waiting)
        self.batcher = Batcher(
            max_batch=settings.max_batch,
            max_queue=settings.max_queue,
            observe=self.metrics.batches.observe,
        )
        self.files = FileReader(settings)
        self._plain = partial(self.encoder.encode, normalize=False)

    def limited(self, field: str, texts: list[str]) -> list[str]:
        """Returns the texts of a request's field after counting them.

        Raises:
            RequestError: there are more than `max_texts`.
        """
        most = self.settings.max_texts
        if len(texts) > most:
            raise refused(field, f"{len(texts):,} texts; at most {most:,} are allowed.")
        return texts

    def dimensions(self, asked: int | None) -> int | None:
        """Returns the number of dimensions that a request asks for; None means all.

        Raises:
            RequestError: the model has fewer, or was not trained for fewer.
        """
        if asked is None or asked == self.encoder.dim:
            return None
        if asked > self.encoder.dim:
            raise refused("dimensions", f"the model has {self.encoder.dim}; got {asked}.")
        if not self._nested:
            raise refused("dimensions", f"{self.name} was not trained for fewer (nested_dims).")
        return asked

    async def check_lengths(self, field: str, texts: Sequence[str], truncate: bool | None) -> None:
        """Checks the lengths of texts if a request forbids cutting them (`truncate` is False).

        Raises:
            RequestError: a text has more tokens than the model reads.
        """
        most = self.description["max_tokens"]
        if truncate is not False or most is None:
            return
        long = await self.batcher.call(partial(self.encoder.too_long, texts), len(texts))
        if long.any():
            said = f"text {int(long.argmax())} has more tokens than {self.name} reads ({most:,})."
            raise refused(field, said)

    async def embed(
        self, texts: Sequence[str], *, normalize: bool = True, dim: int | None = None
    ) -> Embeddings:
        """Returns (N, D) float32 embeddings, as `SentenceEncoder.encode` computes them.

        With `dim` they are (N, dim): the first values, scaled to length 1 if `normalize`.
        """
        function: Encode = self.encoder.encode if normalize else self._plain
        return _cut(await self.batcher.encode(function, texts), dim, normalize=normalize)

    async def embed_counted(
        self, texts: Sequence[str], *, dim: int | None = None
    ) -> tuple[Embeddings, int]:
        """Returns embeddings as `embed` does, and the number of tokens in the texts."""
        rows = await self.batcher.encode(self._encode_and_count, texts)
        return _cut(rows[:, :-1], dim, normalize=True), int(rows[:, -1].sum(dtype=np.float64))

    def _encode_and_count(self, texts: list[str]) -> Embeddings:
        """Returns (N, D + 1): embeddings, with the number of tokens in the last column."""
        counts = self.model.features(texts).lengths
        return np.column_stack((self.encoder.encode(texts), counts.astype(np.float32)))

    async def cosines(self, text: str, others: Sequence[str]) -> NDArray[np.float32]:
        """Returns the (N,) cosines of a text with others."""
        rows = await self.embed([text, *others])
        [cosines] = self.encoder.similarity(rows[:1], rows[1:])
        return np.asarray(cosines)

    async def scores(self, query: str, texts: Sequence[str], *, raw: bool) -> list[float]:
        """Returns scores of how well texts fit a query, from 0 to 1.

        With `raw`, they are a scorer's scores from 0 to 5, or otherwise cosines.
        """
        if self.scorer is None:
            cosines = await self.cosines(query, texts)
            return (cosines if raw else (1 + cosines) / 2).tolist()  # type: ignore[no-any-return]
        work = partial(self.scorer.score, [query] * len(texts), texts)
        found = await self.batcher.call(work, 2 * len(texts))
        return (found if raw else found / HIGHEST).tolist()  # type: ignore[no-any-return]

    @property
    def searched(self) -> int:
        """Number of texts that `search` searches."""
        if self.index is None:
            return len(self._texts)
        with _index_errors():
            return len(self.index)

    async def search(self, queries: Sequence[str], top_k: int, chosen: Mapping[str, Any]) -> Hits:
        """Returns the server's best texts for each query, best first.

        `chosen` are further arguments of `TextIndex.best`.

        Raises:
            RequestError: the answer would be too large, texts can't be searched as chosen, or the
                index is damaged.
        """
        find: _Find
        if self.index is None:
            if chosen:
                raise refused(next(iter(chosen)), "this is for a server with --index FOLDER.")
            find = partial(self._texts.nearest, await self.embed(queries))
        else:
            given = list(queries)
            queries, _ = await self.read_index(lambda index: index.in_own_words(given))
            mode = chosen.get("mode", "semantic")
            rows = None if mode == "words" else await self.embed(queries)
            find = partial(self._best, self.index, queries, rows, {**chosen, "mode": mode})
        around = (1 + 2 * chosen.get("context", 0)) * (_EXPLAINED if "explain" in chosen else 1)
        work = partial(self._search, find, len(queries), top_k, around)
        found: Hits = await self.batcher.call(work, len(queries))
        return found

    async def read_as(self, queries: Sequence[str]) -> list[dict[str, str]]:
        """Returns for each query the words that `search` reads as other words, with these words.

        Raises:
            RequestError: the index is damaged.
        """
        given = list(queries)
        if self.index is not None:
            return await self.read_index(lambda index: index.read_as(given), len(given))
        work = partial(self.encoder.read_as, given)
        read: list[dict[str, str]] = await self.batcher.call(work, len(given))
        return read

    async def read_index(self, read: Callable[[Index], T], texts: int = 1) -> T:
        """Returns the result of `read` for the index; it may return up to `texts` texts.

        Raises:
            RequestError: there is no index, it is damaged, or a condition of a search is not valid.
        """
        if (index := self.index) is None:
            raise RequestError(404, "this server has no index; start it with --index FOLDER.")

        def work() -> T:
            with _index_errors():
                return read(index)

        result: T = await self.batcher.call(work, texts)
        return result

    def _best(
        self,
        index: Index,
        queries: Sequence[str],
        rows: Embeddings | None,
        chosen: Mapping[str, Any],
        top_k: int,
    ) -> Hits:
        best = {key: value for key, value in chosen.items() if key != "explain"}
        hits = index.best(queries, rows, top_k, features=self.model.features, **best)
        found = with_answered(hits, index.find)
        return with_why(queries, found, self.model) if chosen.get("explain") else found

    def _search(self, find: _Find, queries: int, top_k: int, around: int) -> Hits:
        """Returns the result of `find`; `around` is the number of texts per hit, with context."""
        with _index_errors():
            if self.index is not None:
                self.index.reload()
            top_k = min(top_k, max(self.searched, 1))
            if top_k * queries * around > _MOST_HITS:
                count = f"{top_k * around:,} hits for {queries:,} queries, with those around them"
                raise refused("top_k", f"{count}; at most {_MOST_HITS:,} are allowed.")
            found = find(top_k)
        size = sum(
            len(each.text)
            for hit in chain.from_iterable(found)
            for each in (hit, *getattr(hit, "before", ()), *getattr(hit, "after", ()))
        )
        if size > MOST_CHARACTERS:
            said = f"the hits have {size:,} characters; at most {MOST_CHARACTERS:,} are allowed."
            raise refused("top_k", said)
        return found

    async def tokens(self, texts: Sequence[str]) -> list[list[Token]]:
        """Returns the tokens of each text.

        Raises:
            RequestError: there are too many.
        """

        def read() -> list[list[Token]]:
            count = int(self.model.features.whole(texts).lengths.sum())
            if count > _MOST_TOKENS:
                raise refused("inputs", f"{count:,} tokens; at most {_MOST_TOKENS:,} are allowed.")
            return read_tokens(self.model.features, texts)

        found: list[list[Token]] = await self.batcher.call(read, len(texts))
        return found


@contextmanager
def _index_errors() -> Iterator[None]:
    """Turns errors of an index into errors of a request.

    Raises:
        RequestError: a condition is not valid, or the index is damaged.
    """
    try:
        yield
    except ConditionError as error:
        raise RequestError(422, str(error), field=str(error).partition(":")[0]) from None
    except InputError as error:
        _LOG.error("the index can't be read", exc_info=error)
        raise RequestError(  # without the path, which is in the error
            503, "the server can't read its index; its log has the reason."
        ) from None


def service_of(request: Request) -> Service:
    """Returns the service of the app that received a request."""
    service: Service = request.app.state.service
    return service


def _cut(rows: Embeddings, dim: int | None, *, normalize: bool) -> Embeddings:
    """Returns the first `dim` columns in C order, with rows of length 1 if `normalize`."""
    cut = np.ascontiguousarray(rows[:, :dim], np.float32)
    return unit_rows(cut) if dim is not None and normalize else cut


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
    """Places of the query's words in it: indices of the first character, and after the last."""
    cosine: float | None
    """Null if the model can't be explained by words."""
    words: list[tuple[int, int, float]]
    """What each word of the text adds to the cosine: its place in the text, and how much."""


@dataclass(frozen=True)
class MessageHit(IndexHit):
    """A found text of an index, or a found message."""

    answered: str | None = None
    """The message that it answers; null if there is none, or if the server does not have it."""


@dataclass(frozen=True)
class ExplainedHit(MessageHit):
    """A found text of an index, and why it was found."""

    why: Why | None = None


Find = Callable[[Sequence[str]], list[str | None]]
"""Returns the texts with the given ids, None where there is none."""


def with_answered(found: list[list[IndexHit]], find: Find) -> list[list[IndexHit]]:
    """Returns hits with the messages that they answer."""
    answered = iter(find([hit.about.get("answers", "") for hits in found for hit in hits]))
    return [[MessageHit(**vars(hit), answered=next(answered)) for hit in hits] for hits in found]


def with_why(
    queries: Sequence[str], found: list[list[IndexHit]], model: ModelContents
) -> list[list[IndexHit]]:
    """Returns hits with the words for which they were found."""
    explained = list[list[IndexHit]]()
    for query, hits in zip(queries, found, strict=True):
        whys = _whys(model, query, [hit.text for hit in hits])
        explained.append(
            [ExplainedHit(**vars(hit), why=why) for hit, why in zip(hits, whys, strict=True)]
        )
    return explained


def _whys(model: ModelContents, query: str, texts: list[str]) -> list[Why]:
    found = [matches(query, text) for text in texts]
    if not model.is_sum_of_rows:
        return [Why(each, None, []) for each in found]
    return [
        Why(each, round(cosine, 6), [(start, stop, round(one, 4)) for start, stop, one in words])
        for each, (cosine, words) in zip(found, word_shares(model, query, texts), strict=True)
    ]


@dataclass(frozen=True)
class Explored:
    """Answers of the routes in `serve.routes.own`; None for what was not computed."""

    name: str | None
    """Name of the conversations on the page."""
    command: str
    """The index, as written in a command."""
    read: str = ""
    """Description of what was read; empty unless it was an export."""
    asked: bytes | None = None
    """JSON answer of `/asked`."""
    topics: bytes | None = None
    """JSON answer of `/topics`."""
    points: bytes = b""
    """The answer of `/points`."""
    ids: Sequence[str] = field(default=(), repr=False)
    """Ids of the messages of the points."""

    suggest: Callable[[str, int, str | None], Suggested] | None = None
    """Suggests this many replies to a message, by an author if one is given."""

    @property
    def found(self) -> list[str]:
        """Names of the computed results."""
        return [name for name in ("asked", "topics", "suggest") if getattr(self, name) is not None]


class Latest:
    """The latest explored results; they are read again after they were prepared again."""

    def __init__(self, manifest: Path, read: Callable[[], Explored]) -> None:
        """Reads the results. `manifest` is the file that changes when they are prepared again."""
        self._manifest, self._read = manifest, read
        self._stamp, self._found = stamp_of(manifest), read()

    def __call__(self) -> Explored:
        """Returns it."""
        stamp = stamp_of(self._manifest)
        if stamp not in (None, self._stamp):
            self._found, self._stamp = read_one_state(self._manifest, self._read), stamp
        return self._found
