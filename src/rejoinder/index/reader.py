"""`IndexReader`: a folder of texts, ids and embeddings that you can search.

Also summarises the messages of an index: how many there are, their dates, authors and channels.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeVar, overload

import numpy as np

from rejoinder.errors import InputError, RejoinderError
from rejoinder.index.files import FILE, Manifest
from rejoinder.index.hits import IndexedText, IndexHit, Place, unscored
from rejoinder.index.segment import EncodedTexts, Segment, encoded_texts
from rejoinder.index.state import Mode, State, check_mode, check_segments, opened
from rejoinder.index.where import Where
from rejoinder.index.words import own_words
from rejoinder.inference.inputs import Sentences, as_texts, whole_number
from rejoinder.io.files.claims import stamp_of
from rejoinder.protocols import Embeddings
from rejoinder.text.features import WordFeatures

MOST_NAMES = 1_000
"""Most authors, and most channels, in a summary."""


@dataclass(frozen=True)
class Summary:
    """A summary of the texts of an index."""

    texts: int
    first: float | None
    """Time of the first message, in seconds since 1970 in UTC; None if no text has a time."""
    last: float | None
    authors: list[tuple[str, int]]
    """The authors with the most messages, and their counts; at most `MOST_NAMES`."""
    sources: list[tuple[str, int]]
    """The channels with the most messages, likewise."""
    threads: bool
    """Whether any message is in a thread or a channel, so that others are around it."""


def summary_of(segments: Sequence[Segment]) -> Summary:
    """Returns the summary of segments, without their deleted texts.

    Raises:
        InputError: the index is damaged.
    """
    counts: dict[str, Counter[str]] = {"author": Counter(), "source": Counter()}
    first, last, threads = np.inf, -np.inf, False
    for segment in segments:
        if (fields := segment.fields) is None:
            continue
        kept = ~segment.deleted
        for name, counter in counts.items():
            counter.update(fields.counts(name, kept))
        threads |= fields.has("thread") or fields.has("source")
        times = fields.times[kept]
        times = times[np.isfinite(times)]
        first, last = min(first, times.min(initial=np.inf)), max(last, times.max(initial=-np.inf))
    return Summary(
        sum(segment.entry.count for segment in segments),
        float(first) if np.isfinite(first) else None,
        float(last) if np.isfinite(last) else None,
        counts["author"].most_common(MOST_NAMES),
        counts["source"].most_common(MOST_NAMES),
        threads,
    )


def between_two(segments: Sequence[Segment]) -> dict[str, int]:
    """Returns the channels with at most two authors, like direct messages, and their counts.

    Raises:
        InputError: a file was changed.
    """
    counts: Counter[str] = Counter()
    authors: dict[str, set[str]] = defaultdict(set)
    for segment in segments:
        if (fields := segment.fields) is None:
            continue
        both = np.stack([fields.numbers("source"), fields.numbers("author")], 1)[~segment.deleted]
        names, times = np.unique(both, axis=0, return_counts=True)
        for (source, author), count in zip(names.tolist(), times.tolist(), strict=True):
            counts[fields.value(source)] += count
            authors[fields.value(source)].add(fields.value(author))
    return {name: counts[name] for name, some in authors.items() if name and len(some) <= 2}


T = TypeVar("T")
_ATTEMPTS = 10
"""Most retries of a read when another process changes the index."""


class IndexReader:
    """A folder of texts with ids and embeddings. Each call reads its latest state.

    Changes, also by other processes, therefore show in the next call. Threads may share a reader.
    """

    def __init__(self, folder: Path) -> None:
        """Opens an index. Embeddings and texts are read on use.

        Raises:
            InputError: the folder is not an index, or a file is missing or has another size.
        """
        self.folder = folder
        self._state = opened(folder)

    def reload(self) -> None:
        """Opens the index again if it has changed, as each call does; this checks one file.

        Raises:
            InputError: it is damaged, gone, or replaced by an index of another model.
        """
        self._latest()

    def _latest(self) -> State:
        """Returns the latest state of the index; safe to read while others change the index."""
        state = self._state
        if stamp_of(self.folder / FILE) != state.stamp:
            before, state = state.manifest, opened(self.folder, state)
            now = state.manifest
            if not now.model.is_same(before.model) or now.dim != before.dim:
                raise InputError(
                    f"{self.folder} was replaced by an index of another model, {now.model.name}; "
                    "open it again."
                )
            self._state = state
        return state

    def _at_latest(self, read: Callable[[State], T]) -> T:
        """Calls `read` with the latest state and returns its result.

        A change removes the files of the earlier state, so `read` may fail; it is then retried.
        """
        for _ in range(_ATTEMPTS):
            state = self._latest()
            try:
                return read(state)
            except (RejoinderError, OSError):
                if stamp_of(self.folder / FILE) == state.stamp:
                    raise
        return read(self._latest())

    @property
    def manifest(self) -> Manifest:
        """Model, settings and segments."""
        return self._latest().manifest

    @property
    def segments(self) -> Sequence[Segment]:
        """The parts of the index."""
        return self._latest().segments

    @property
    def has_messages(self) -> bool:
        """Whether any text has an author, a time or a channel."""
        return any(segment.fields is not None for segment in self.segments)

    def __len__(self) -> int:
        return len(self._latest())

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {value}" for name, value in self._told().items())
        return f"<{type(self).__name__} {told}>"

    def _repr_html_(self) -> str:
        """Returns a table for a notebook."""
        rows = (
            f"<tr><th>{name}</th><td>{escape(value)}</td></tr>"
            for name, value in self._told().items()
        )
        return f"<table>{''.join(rows)}</table>"

    def _told(self) -> dict[str, str]:
        told = {"folder": str(self.folder)}
        try:
            return told | self.facts()
        except RejoinderError as error:
            return {**told, "error": str(error)}

    def facts(self) -> dict[str, str]:
        """Returns the main facts to show a person: texts, model, and the first and last day.

        Raises:
            InputError: the index is damaged.
        """
        summary, manifest = self.summary(), self.manifest
        told = {
            "texts": f"{summary.texts:,}",
            "model": manifest.model.name,
            "dimensions": f"{manifest.dim:,}",
        }
        if summary.first is not None and summary.last is not None:
            first, last = np.array([summary.first, summary.last]).astype("M8[s]").astype("M8[D]")
            told |= {"from": str(first), "to": str(last)}
        return told

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._at_latest(lambda state: state.places([name])[0]) is not None

    @overload
    def get(self, ids: str) -> str: ...
    @overload
    def get(self, ids: list[str]) -> list[str]: ...
    def get(self, ids: str | list[str]) -> str | list[str]:
        """Returns the text with an id, or a list of texts for a list of ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        texts = self._at_latest(lambda state: state.texts(self._known_places(state, ids)))
        return texts[0] if isinstance(ids, str) else texts

    def find(self, ids: Sequence[str]) -> list[str | None]:
        """Returns the texts with these ids, None for unknown ids."""
        names = list(ids)
        return self._at_latest(
            lambda state: [
                None if place is None else state.texts([place])[0] for place in state.places(names)
            ]
        )

    def encoded(self) -> Iterator[EncodedTexts]:
        """Yields all texts with ids, embeddings and metadata, in parts."""
        yield from encoded_texts(self._latest().segments)

    def embeddings(self, ids: list[str]) -> Embeddings:
        """Returns the (N, D) float32 embeddings of the texts with the given ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        return self._at_latest(lambda state: state.embeddings(self._known_places(state, ids)))

    def around(self, name: str, context: int) -> IndexHit:
        """Returns the text with an id as a hit with score 0, with the messages around it.

        Raises:
            InputError: no text has the id, or as in `nearest`.
        """
        [[hit]] = self._at_latest(
            lambda state: state.hits([unscored(self._known_places(state, name))], context)
        )
        return hit

    def known(self, ids: list[str]) -> list[IndexedText]:
        """Returns the texts with the given ids and their metadata; unknown ids are left out.

        Raises:
            InputError: the index is damaged.
        """

        def read(state: State) -> list[IndexHit]:
            places = [place for place in state.places(ids) if place is not None]
            return state.hits([unscored(places)], 0)[0]

        hits = self._at_latest(read)
        return [IndexedText(hit.id, hit.text, hit.about) for hit in hits]

    def summary(self) -> Summary:
        """Returns the number of texts, their dates, and the busiest authors and channels.

        Raises:
            InputError: the index is damaged.
        """
        return self._at_latest(lambda state: summary_of(state.segments))

    @property
    def is_exact(self) -> bool:
        """Whether every search is exact: under 200,000 texts, `recall=1`, or made without FAISS."""
        return all(segment.lists is None for segment in self._latest().segments)

    def nearest(
        self,
        queries: Embeddings,
        top_k: int = 10,
        *,
        exact: bool = False,
        where: Where | None = None,
        context: int = 0,
    ) -> list[list[IndexHit]]:
        """Returns for each query the `top_k` nearest texts by cosine, best first.

        Scores are exact. Texts with equal scores come in the order in which they were added. In
        segments with lists, a search may miss a near text unless `exact`.

        Args:
            queries: (Q, D) float32, unit or zero rows of the index's dimension.
            top_k: Number of hits per query, at least 1.
            exact: Compare each query with all texts.
            where: Find only messages that meet these conditions; the search is then exact.
            context: Number of messages before and after each hit in its thread or channel.

        Raises:
            InputError: `top_k` is not a whole number of at least 1; a condition is not valid or no
                text can meet it (`where.py`); `context` is not a whole number of at least 0, or the
                texts are not messages; or the index is damaged.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        return self.best(
            (), queries, top_k, mode="semantic", exact=exact, where=where, context=context
        )

    def matching(
        self,
        queries: Sentences,
        top_k: int = 10,
        *,
        where: Where | None = None,
        context: int = 0,
        features: object = None,
    ) -> list[list[IndexHit]]:
        """Returns for each query the `top_k` texts with the highest BM25, best first.

        Texts without a word of the query are not found. Texts with equal scores come in the order
        in which they were added. The first search by words compares the files of words with their
        SHA-256. `features` must come from the model of the index; they tell how frequent the words
        of the query are in the language.

        Raises:
            InputError: a query is not a string, or as in `nearest`.
        """
        return self.best(queries, None, top_k, where=where, context=context, features=features)

    def best(
        self,
        queries: Sentences,
        embeddings: Embeddings | None,
        top_k: int = 10,
        *,
        mode: Mode = "hybrid",
        weight: float | None = None,
        exact: bool = False,
        where: Where | None = None,
        context: int = 0,
        features: object = None,
    ) -> list[list[IndexHit]]:
        """Searches as `nearest` or `matching` does, or by both together (hybrid).

        A hybrid search takes the best texts by each, at least 30, and the messages next to them,
        and ranks them with their metadata (`index.ranking`).

        Args:
            queries: Q texts.
            embeddings: (Q, D) float32 embeddings of the queries; not needed for a search by words.
            top_k: Number of hits per query, at least 1.
            mode: `semantic`, `words` or `hybrid`.
            weight: Weight of meaning in a hybrid search, from 0 to 1. Default: the weight that
                `finetune` found for the model, else 0.25.
            exact: As in `nearest`.
            where: Likewise.
            context: Likewise.
            features: As in `matching`.

        Raises:
            InputError: as in `nearest` and `matching`, or the mode or weight is not valid.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        check_mode(mode, weight)
        top_k, texts = whole_number("top_k", top_k), as_texts(queries)[0]
        ranks = features.vocabulary.index if isinstance(features, WordFeatures) else {}

        def read(state: State) -> list[list[IndexHit]]:
            found = state.search(
                texts,
                embeddings,
                top_k,
                mode=mode,
                weight=weight,
                exact=exact,
                where=where,
                ranks=ranks,
            )
            return state.hits(found, context)

        return self._at_latest(read)

    def own_words(self, queries: Sequence[str], features: object) -> list[dict[str, str]]:
        """Returns, for each query, its misspellings of words of the index (see `own_words`).

        `features` must come from the model of the index; models of subwords have no readings.

        Raises:
            InputError: the index is damaged.
        """
        if not isinstance(features, WordFeatures):
            return [{} for _ in queries]
        return self._at_latest(lambda state: own_words(queries, state.times, features))

    def dates(self, queries: Sequence[str]) -> list[dict[str, str]]:
        """Returns, for each query, the words that name a date, and the date in a hybrid search.

        Raises:
            InputError: the index is damaged.
        """
        return self._at_latest(lambda state: state.dates(queries))

    def check(self) -> None:
        """Compares every file with the SHA-256 recorded when it was written.

        Raises:
            InputError: a file has changed.
        """
        self._at_latest(lambda state: check_segments(self.folder, state.manifest.segments))

    def _known_places(self, state: State, ids: str | Iterable[str]) -> list[Place]:
        """Returns the segments and rows of texts.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        names = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"id {name!r}: ids are strings, such as {str(name)!r}.")
        places: list[Place] = []
        for name, place in zip(names, state.places(names), strict=True):
            if place is None:
                raise InputError(f"{self.folder} has no text with the id {name!r}.")
            places.append(place)
        return places
