"""`State`: a snapshot of an index, which stays readable while others change the index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ConditionError, InputError
from rejoinder.index.fields import refuse_unmet
from rejoinder.index.files import (
    FILE,
    REMEDY,
    WEIGHT,
    Manifest,
    SegmentFacts,
    keys_of,
    read_manifest,
)
from rejoinder.index.hits import Found, IndexHit, Place, hits_of
from rejoinder.index.matching import Ranks, WordSearch, search_segments, weights_of
from rejoinder.index.ranking import DEPTH, NOTHING, Together, is_close
from rejoinder.index.segment import BY_WORDS, Absent, Segment, places_of
from rejoinder.index.where import Where, conditions_of
from rejoinder.inference.inputs import whole_number
from rejoinder.io.files.claims import Stamp, read_one_state, stamp_of
from rejoinder.io.files.hashed import check_file
from rejoinder.io.files.storage import lacks_memory
from rejoinder.protocols import Embeddings
from rejoinder.text.languages import Stem, stemmer


@dataclass(frozen=True)
class State:
    """The manifest of an index, and its memory-mapped segments."""

    stamp: Stamp | None
    """Identifies the manifest's file."""
    manifest: Manifest
    segments: Sequence[Segment]

    def __len__(self) -> int:
        return sum(entry.count for entry in self.manifest.segments)

    def places(self, ids: Sequence[str]) -> list[Place | None]:
        """Returns the segment and row of each id; None for an id that is not in the index."""
        return places_of(self.segments, ids)

    def texts(self, places: Sequence[Place]) -> list[str]:
        """Returns the texts at some places."""
        return [self.segments[part].texts[row] for part, row in places]

    def embeddings(self, places: Sequence[Place]) -> Embeddings:
        """Returns the (N, D) float32 embeddings of the texts at some places."""
        rows = [self.segments[part].embeddings[[row]] for part, row in places]
        return np.concatenate([np.empty((0, self.manifest.dim)), *rows]).astype(np.float32)

    def search(
        self,
        queries: Sequence[str],
        embeddings: Embeddings | None,
        top_k: int,
        *,
        mode: "Mode",
        weight: float | None,
        exact: bool,
        where: Where | None,
        ranks: Ranks,
    ) -> list[Found]:
        """Returns for each query the best texts; see `IndexReader.best`."""
        absent, depth = self._absent(where), max(top_k, DEPTH)
        if mode == "words" or embeddings is None:
            words = [weights_of(query, self._stem, ranks) for query in queries]
            return WordSearch(self.segments, words).best(top_k, absent)
        nearest = partial(
            search_segments, self.segments, embeddings, absent=absent, exact=exact or bool(where)
        )
        if mode == "semantic":
            return nearest(top_k)
        if weight is None:
            weight = WEIGHT if self.manifest.language is None else self.manifest.weight
        named = list(zip(queries, self._together.names(queries), strict=True))
        by_words = WordSearch(
            self.segments,
            [weights_of(query, self._stem, ranks, names) for query, names in named],
        )
        asked = [self._together.asked_by(query, ranks, names) for query, names in named]
        lists = [nearest(depth)] if weight > 0 else []
        lists += [by_words.best(depth, absent)] if weight < 1 else []
        found = list(zip(*lists, strict=True))
        best = self._together.best(by_words, asked, embeddings, found, absent, weight, top_k)
        both = zip(best, asked, found, strict=True)
        # a user who narrows a search down wants to see every match
        return [one if where or is_close(what, lists) else NOTHING for one, what, lists in both]

    @cached_property
    def _together(self) -> Together:
        return Together(self.segments, self._stem)

    @cached_property
    def _stem(self) -> Stem:
        return stemmer(self.manifest.language or "")

    def dates(self, queries: Sequence[str]) -> list[dict[str, str]]:
        """Returns, for each query, the words that name a date, and the date."""
        found = map(self._together.date, queries)
        return [{words: str(date)} if words else {} for words, date in found]

    def times(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Returns how often each word occurs in texts, as written, (N,) int64."""
        keys = keys_of(words)
        counts = np.zeros(len(keys), np.int64)
        for segment in self.segments:
            segment.refuse_cut(BY_WORDS)
            counts += segment.words.times(keys)
        return counts

    def hits(self, found: Sequence[Found], context: int) -> list[list[IndexHit]]:
        """Returns the hits for found texts, with the messages around them.

        Raises:
            InputError: `context` is not a whole number.
            ConditionError: the texts are not messages.
        """
        if context != 0:
            context = whole_number("context", context)
            if len(self) and all(segment.fields is None for segment in self.segments):
                raise ConditionError(
                    "context: the texts of the index are not messages of an export, so no "
                    "messages are around them."
                )
        return hits_of(self.segments, found, context)

    def _absent(self, where: Where | None) -> list[Absent]:
        """Returns the texts of each segment to leave out of a search.

        Raises:
            InputError: a condition is not valid, or no text has its field or one of its values.
        """
        if not where:
            return [segment.absent() for segment in self.segments]
        conditions = conditions_of(where)
        fields = [segment.fields for segment in self.segments if segment.fields is not None]
        refuse_unmet(conditions, fields)
        return [segment.absent(conditions) for segment in self.segments]


def opened(folder: Path, before: State | None = None) -> State:
    """Opens the latest state of an index; another process may be changing it.

    Segments that are already in the state `before` are reused.

    Raises:
        InputError: the folder is not an index, or a file is missing or has another size.
    """
    return read_one_state(folder / FILE, partial(_read, folder, before))


def _read(folder: Path, before: State | None) -> State:
    known = {} if before is None else {one.entry.name: one for one in before.segments}
    try:
        stamp = stamp_of(folder / FILE)
        manifest = read_manifest(folder)
        segments = [
            same
            if (same := known.get(entry.name)) is not None and same.entry == entry
            else Segment(folder, entry, manifest)
            for entry in manifest.segments
        ]
    except OSError as error:  # another process just removed the file
        if lacks_memory(error):
            raise
        raise InputError(f"{folder} can't be read: {error.strerror or error}.") from None
    return State(stamp, manifest, segments)


def check_segments(folder: Path, entries: Iterable[SegmentFacts]) -> None:
    """Compares every file of segments with the SHA-256 recorded when it was written.

    Raises:
        InputError: a file has changed.
    """
    for entry in entries:
        for name, facts in entry.files.items():
            check_file(folder / entry.name / name, facts, InputError, REMEDY)


Mode = Literal["semantic", "words", "hybrid"]
"""What a search compares: embeddings, words, or both."""
MODES: tuple[Mode, ...] = get_args(Mode)


def check_mode(mode: str, weight: float | None) -> None:
    """Checks a search mode, and the weight of meaning in a hybrid search unless it is None.

    Raises:
        InputError: one of them is not valid.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")
    if weight is None:
        return
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InputError(f"weight must be a number from 0 to 1; got {weight!r}.")
