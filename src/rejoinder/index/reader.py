"""`IndexReader`: a folder of texts, ids and embeddings that you can search."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from rejoinder.errors import ConditionError, InputError
from rejoinder.index.by_words import search_by_words
from rejoinder.index.fields import refuse_unmet
from rejoinder.index.hits import Found, IndexedText, IndexHit, hits_of, unscored
from rejoinder.index.hybrid import DEPTH, Mode, check_mode, fuse
from rejoinder.index.manifest import FILE, REMEDY, read_manifest
from rejoinder.index.nearest import search_segments
from rejoinder.index.segment import (
    Absent,
    EncodedTexts,
    Segment,
    encoded_texts,
    places_of,
)
from rejoinder.index.summary import Summary, summary_of
from rejoinder.index.where import Where, conditions_of
from rejoinder.inference.inputs import Sentences, as_texts, whole_number
from rejoinder.io.files.hashed import check_file
from rejoinder.io.files.states import read_one_state, stamp_of
from rejoinder.io.files.storage import lacks_memory
from rejoinder.protocols import Embeddings


class IndexReader:
    """Texts with ids and embeddings in a folder, in the state that was opened."""

    def __init__(self, folder: Path) -> None:
        """Opens an index. Embeddings and texts are read when they are used.

        Raises:
            InputError: the folder is not an index, or a file is missing or has another size.
        """
        self.folder = folder
        self._open()

    def _open(self) -> None:
        """Opens the files of one state of the index; another process may be changing it."""
        read_one_state(self.folder / FILE, self._read)

    def _read(self) -> None:
        try:
            self._opened_at = stamp_of(self.folder / FILE)
            self.manifest = read_manifest(self.folder)
            self._segments = [
                Segment(self.folder, entry, self.manifest) for entry in self.manifest.segments
            ]
        except OSError as error:  # another process just removed it
            if lacks_memory(error):
                raise
            raise InputError(f"{self.folder} can't be read: {error.strerror or error}.") from None

    def reload(self) -> None:
        """Opens the index again if it has changed. Checking that reads the state of one file.

        Raises:
            InputError: it is damaged or gone.
        """
        if stamp_of(self.folder / FILE) != self._opened_at:
            self._open()

    def __len__(self) -> int:
        return sum(entry.count for entry in self.manifest.segments)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        self.reload()
        return self._places([name])[0] is not None

    @overload
    def get(self, ids: str) -> str: ...
    @overload
    def get(self, ids: list[str]) -> list[str]: ...
    def get(self, ids: str | list[str]) -> str | list[str]:
        """Returns the text with an id, or a list of texts for a list of ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        self.reload()
        texts = [self._segments[part].texts[row] for part, row in self._known_places(ids)]
        return texts[0] if isinstance(ids, str) else texts

    def find(self, ids: Sequence[str]) -> list[str | None]:
        """Returns the texts with these ids, None where there is none."""
        self.reload()
        places = self._places(list(ids))
        return [
            None if place is None else self._segments[place[0]].texts[place[1]] for place in places
        ]

    def encoded(self) -> Iterator[EncodedTexts]:
        """Yields all texts with ids, embeddings and what is known about them, in parts."""
        yield from encoded_texts(self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """The parts of the state that was opened."""
        return self._segments

    def embeddings(self, ids: list[str]) -> Embeddings:
        """Returns the (N, D) float32 embeddings of the texts with some ids.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        self.reload()
        rows = [self._segments[part].embeddings[[row]] for part, row in self._known_places(ids)]
        return np.concatenate([np.empty((0, self.manifest.dim)), *rows]).astype(np.float32)

    def around(self, name: str, context: int) -> IndexHit:
        """Returns the text with an id, and messages around it as a search does; its score is 0.

        Raises:
            InputError: no text has the id, or as in `nearest`.
        """
        self.reload()
        [[hit]] = self._hits([unscored(self._known_places(name))], context)
        return hit

    def known(self, ids: list[str]) -> list[IndexedText]:
        """Returns the texts with some ids and what is known about them, as far as they are there.

        Raises:
            InputError: the index is damaged.
        """
        self.reload()
        places = [place for place in self._places(ids) if place is not None]
        [hits] = self._hits([unscored(places)], 0)
        return [IndexedText(hit.id, hit.text, hit.about) for hit in hits]

    def summary(self) -> Summary:
        """Returns how many texts there are, from when to when, by whom and where.

        Raises:
            InputError: the index is damaged.
        """
        self.reload()
        return summary_of(self._segments)

    @property
    def knows(self) -> bool:
        """Whether something is known about some texts, as about messages of an export."""
        return any(segment.fields is not None for segment in self._segments)

    @property
    def is_exact(self) -> bool:
        """Whether each search is exact: no 200,000 texts, or `recall=1`, or made without FAISS."""
        return all(segment.lists is None for segment in self._segments)

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
        segments with lists a near text may be missed, unless `exact`.

        Args:
            queries: (Q, D) float32, unit or zero rows of the index's dimension.
            top_k: Number of hits per query, at least 1.
            exact: Compare each query with all texts.
            where: Find only messages that meet these conditions; the search is then exact.
            context: Number of messages before and after each hit in its thread or channel.

        Raises:
            InputError: `top_k` is not a whole number of at least 1, a condition is not valid or no
                text can meet it (`where.py`), `context` is not a whole number of at least 0 or the
                texts are not messages, or the index is damaged.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        top_k = whole_number("top_k", top_k)
        absent = self._absent(where)
        found = search_segments(
            self._segments, queries, top_k, absent=absent, exact=exact or bool(where)
        )
        return self._hits(found, context)

    def matching(
        self,
        queries: Sentences,
        top_k: int = 10,
        *,
        where: Where | None = None,
        context: int = 0,
    ) -> list[list[IndexHit]]:
        """Returns for each query the `top_k` texts with the highest BM25, best first.

        Texts without a word of the query are not found. Texts with equal scores come in the order
        in which they were added. The first search by words compares the files of words with their
        SHA-256.

        Raises:
            InputError: a query is not a string, or as in `nearest`.
        """
        top_k, texts = whole_number("top_k", top_k), as_texts(queries)[0]
        found = search_by_words(self._segments, texts, top_k, self._absent(where))
        return self._hits(found, context)

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
    ) -> list[list[IndexHit]]:
        """Returns what `nearest` or `matching` does, or the texts that are best by both together.

        For a hybrid search, the lists of `nearest` and `matching`, each of at least 50 texts, are
        fused by the places of texts in them (`index.hybrid`).

        Args:
            queries: Texts.
            embeddings: (Q, D) float32, those of the queries; a search by words needs none.
            top_k: Number of hits per query, at least 1.
            mode: What to compare.
            weight: Share of the list by meaning in a hybrid search, from 0 to 1. Default: what
                `finetune` found for the model, else 0.5.
            exact: As in `nearest`.
            where: Likewise.
            context: Likewise.

        Raises:
            InputError: as in `nearest` and `matching`, or the mode or weight is not valid.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        check_mode(mode, weight)
        if mode == "words" or embeddings is None:
            return self.matching(queries, top_k, where=where, context=context)
        if mode == "semantic":
            return self.nearest(embeddings, top_k, exact=exact, where=where, context=context)
        top_k, texts = whole_number("top_k", top_k), as_texts(queries)[0]
        depth, absent = max(top_k, DEPTH), self._absent(where)
        meaning = search_segments(
            self._segments, embeddings, depth, absent=absent, exact=exact or bool(where)
        )
        words = search_by_words(self._segments, texts, depth, absent)
        share = self.manifest.weight if weight is None else weight
        both = zip(meaning, words, strict=True)
        found = [fuse(first.places, second.places, share, top_k) for first, second in both]
        return self._hits(found, context)

    def _hits(self, found: Sequence[Found], context: int) -> list[list[IndexHit]]:
        """Returns what was found, with messages around it.

        Raises:
            InputError: `context` is not a whole number.
            ConditionError: the texts are not messages.
        """
        if context != 0:
            context = whole_number("context", context)
            if len(self) and all(segment.fields is None for segment in self._segments):
                raise ConditionError(
                    "context: the texts of the index are not messages of an export, and have no "
                    "others around them."
                )
        return hits_of(self._segments, found, context)

    def _absent(self, where: Where | None) -> list[Absent]:
        """Returns the texts of each segment that a search does not find.

        Raises:
            InputError: a condition is not valid, or no text has its field or one of its values.
        """
        if not where:
            return [segment.absent() for segment in self._segments]
        conditions = conditions_of(where)
        fields = [segment.fields for segment in self._segments if segment.fields is not None]
        refuse_unmet(conditions, fields)
        return [segment.absent(conditions) for segment in self._segments]

    def check(self) -> None:
        """Compares every file with its SHA-256 from when it was written.

        Raises:
            InputError: a file has changed.
        """
        for entry in self.manifest.segments:
            for name, facts in entry.files.items():
                check_file(self.folder / entry.name / name, facts, InputError, REMEDY)

    def _places(self, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        """Returns for each id its segment and row; None if the index lacks it."""
        return places_of(self._segments, ids)

    def _known_places(self, ids: str | Iterable[str]) -> list[tuple[int, int]]:
        """Returns the segments and rows of texts.

        Raises:
            InputError: no text has one of the ids, or an id is not a string.
        """
        names = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"id {name!r}: ids are strings, such as {str(name)!r}.")
        places: list[tuple[int, int]] = []
        for name, place in zip(names, self._places(names), strict=True):
            if place is None:
                raise InputError(f"{self.folder} has no text with the id {name!r}.")
            places.append(place)
        return places
