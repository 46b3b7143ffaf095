"""`Collection`: the texts of a file, export, folder of pairs or index, with embeddings and replies.

`dedupe`, `cluster` and `suggest` work on collections.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpus import manifest as pairs_manifest
from rejoinder.corpus.core_text import core_of, cores_of, without_habits
from rejoinder.corpus.texts import Entry, is_question
from rejoinder.errors import InputError
from rejoinder.index.fields import About
from rejoinder.index.files import FILE as INDEX
from rejoinder.index.folder import TextIndex
from rejoinder.index.hits import Found, segments_and_rows
from rejoinder.index.indexing import place_of_model, refuse_other_model
from rejoinder.index.matching import search_segments
from rejoinder.index.segment import Segment
from rejoinder.index.where import Conditions, Where, fields_of
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import first_indices
from rejoinder.inference.neighbours import nearest_rows
from rejoinder.inference.sentence_stream import EncodingProgress, GivenText, Source
from rejoinder.links.linker import SURE
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

Given = str | Path | Iterable[GivenText | Entry]
"""A path; or strings, tuples of an id and a text, or entries."""
Wanted = Callable[[str, About], bool]
"""Returns whether to read a text, given the text and what is known about it."""
Model = SentenceEncoder | str | Path | None
"""An encoder, its name or folder; None: the one of the index, or the one for the language."""


@dataclass(frozen=True)
class Collection:
    """N texts with their embeddings, and what is known about them."""

    name: str
    """The path; empty for texts that a program gave."""
    ids: Sequence[str]
    """Ids from the source; if it has none, numbers from 1."""
    texts: Sequence[str]
    embeddings: Embeddings
    """(N, D) float32, unit or zero rows: from an index, or of texts without their greetings and
    signatures (`corpus.core_text`). Equal texts have equal rows."""
    about: Sequence[About]
    """What is known about each text, by `corpus.texts.KEYS`: `author`, `time`, `source` (the
    channel), `thread`, `answers` (the id of the message that it answers), `link`."""
    left_out: dict[str, int]
    """Number of messages of an export that were left out, by reason."""
    of_responses: bool
    """Whether `encode_response` made the embeddings, as in some indexes."""
    open_encoder: Callable[[], SentenceEncoder]
    """Opens the model of the embeddings. An index that is only read does not need it."""

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The model that made the embeddings.

        Raises:
            InputError: an index does not say where its model is.
            ModelError: the model is no longer there.
        """
        return self.open_encoder()

    def column(self, key: str) -> list[Any]:
        """Returns one fact about each text, such as its `author`; None where it is unknown."""
        return [about.get(key) for about in self.about]

    @cached_property
    def cores(self) -> list[str]:
        """The texts without greetings and signatures, see `corpus.core_text.cores_of`."""
        return cores_of(self.texts, self.column("author"))

    @cached_property
    def gists(self) -> Sequence[str]:
        """The same without habits in other languages, see `corpus.core_text.without_habits`."""
        return without_habits(self.cores)

    @cached_property
    def answered(self) -> Indices:
        """(N,) int64: the index of the message that each one answers; -1 if it is not in here."""
        places = {name: row for row, name in enumerate(self.ids)}
        return np.array([places.get(name, -1) for name in self.column("answers")], np.int64)

    def rows(self, places: Indices) -> Embeddings:
        """Returns the (K, D) float32 embeddings of the texts at (K,) positions."""
        return self.embeddings[places]

    def nearest(
        self, queries: Embeddings, most: int, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[Indices, Embeddings]]:
        """Yields for each query the positions and cosines of the `most` nearest `wanted` texts.

        `queries` are (Q, D) float32, unit or zero rows; `wanted` are (N,) bool.
        """
        found = nearest_rows(queries, self.embeddings, most, absent=~wanted)
        yield from zip(*found, strict=True)

    def meeting(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Returns (N,) bool: which texts meet conditions."""
        return np.fromiter(map(conditions.meets, self.about), np.bool_, len(self))

    @cached_property
    def replies(self) -> list[list[int]]:
        """The indices of the replies to each message."""
        found: list[list[int]] = [[] for _ in self.texts]
        for row, message in enumerate(self.answered.tolist()):
            if message >= 0:
                found[message].append(row)
        return found


def open_collection(
    source: Given | Collection,
    encoder: Model = None,
    *,
    columns: str | None = None,
    where: Where | None = None,
    questions: bool = False,
    min_words: int = 0,
    threads: int | None = None,
    progress: EncodingProgress = lambda _done, _read, _all: None,
) -> Collection:
    """Reads texts and encodes them, or takes the embeddings of an index.

    Args:
        source: An index; a folder of pairs (both sides are read, each message once); a file of
            texts, or an export (`corpus.texts`); or texts. A collection is returned unchanged.
        encoder: The model. For an index, only the model it was made with is allowed.
        columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
        where: Keep only messages that meet all conditions, see `Index.search`.
        questions: Keep only texts with a question mark.
        min_words: Keep only texts of at least this many words, split at spaces.
        threads: Number of CPU cores; None means all that the process may use.
        progress: Called with the progress of the work.

    Raises:
        InputError: the source can't be read or has no texts, none meets `where`, or the index was
            made with another model.
        ModelError: the model can't be loaded.
        MissingExtraError: a package is missing that reads the source.
    """
    if isinstance(source, Collection):
        if encoder is not None or (columns, where) != (None, None) or questions or min_words:
            raise InputError("encoder, columns, where, questions, min_words: already opened.")
        return source
    conditions = fields_of(where)

    def wanted(text: str, about: About) -> bool:
        return (
            conditions.meets(about)
            and (not questions or is_question(text))
            and len(text.split()) >= min_words
        )

    path = Path(source) if isinstance(source, str | Path) else None
    if columns is not None and path is not None and path.is_dir():
        raise InputError(f"`columns` is for a file; {path} is a folder.")
    if path is not None and (path / INDEX).is_file():
        made = _of_index(path, encoder, wanted, threads)
    else:
        pairs = path is not None and (path / pairs_manifest.FILE).is_file()
        given = Source(messages_of_pairs(path) if path and pairs else source, columns)
        given = given.only(lambda one: wanted(one.text, one.about))
        model = given.model() if encoder is None else encoder
        made = _encoded(given, str(path or ""), loaded_encoder(model, threads), progress)
    if not made.texts:
        asked = [f"{key}={value}" for key, value in (where or {}).items()]
        asked += ["a question mark"] if questions else []
        asked += [f"{min_words} words"] if min_words else []
        met = f" with {' and '.join(asked)}" if asked else ""
        raise InputError(f"{made.name or 'what was given'} has no text{met}.")
    return made


def loaded_encoder(
    encoder: SentenceEncoder | str | Path, threads: int | None = None
) -> SentenceEncoder:
    """Returns an encoder unchanged, or loads it."""
    if isinstance(encoder, SentenceEncoder):
        return encoder
    return SentenceEncoder.load(encoder, threads=threads)


def messages_of_pairs(folder: Path) -> Iterator[Entry]:
    """Yields the messages on both sides of all splits, each once; replies name what they answer.

    Likely answers are named from a confidence of `SURE` on.

    Raises:
        InputError: the folder holds no usable pairs.
    """
    from rejoinder.corpus.writer import open_pairs, whole_blocks  # needs Polars

    pairs = open_pairs(folder)
    said: dict[str, Entry] = {}
    for split in pairs_manifest.SPLITS:
        for _, frame in whole_blocks(pairs, split):
            rows = frame.select(_COLUMNS).iter_rows()
            given = frame["confidence"] if "confidence" in frame.columns else [1.0] * len(frame)
            for (asked, name, message, reply, thread, channel), sure in zip(
                rows, given, strict=True
            ):
                about = {"source": channel, "thread": thread}
                about = {key: value for key, value in about.items() if value}
                said.setdefault(asked, Entry(asked, message, about))
                # may be in there as the message of another pair
                answers = {"answers": asked} if sure >= SURE else {}
                likely = {"confidence": round(sure, 2)} if SURE <= sure < 1 else {}
                said[name] = Entry(name, reply, {**about, **answers, **likely})
    return iter(said.values())


_COLUMNS = ("input_id", "response_id", "input", "response", "thread_id", "source")


def _encoded(
    given: Source, name: str, encoder: SentenceEncoder, progress: EncodingProgress
) -> Collection:
    """Encodes each different text once."""
    kept: list[Entry] = []
    rows: dict[str, int] = {}
    firsts: list[int] = []
    parts: list[Embeddings] = []

    def encode(chunk: list[Entry], before: int) -> Embeddings:
        cores = [_core(one) for one in chunk]
        first = [rows.setdefault(core, before + at) for at, core in enumerate(cores)]
        firsts.extend(first)
        new = [at for at, row in enumerate(first) if row == before + at]
        part = np.zeros((len(chunk), encoder.dim), np.float32)
        part[new] = encoder.encode([cores[at] for at in new])
        return part

    for chunk, part in given.encoded(encode, progress):
        parts.append(part)
        kept += chunk
    embeddings = joined(parts, encoder.dim)
    again = np.flatnonzero(np.array(firsts, np.int64) != np.arange(len(firsts)))
    embeddings[again] = embeddings[np.array(firsts, np.int64)[again]]
    return Collection(
        name,
        [one.id or str(number) for number, one in enumerate(kept, 1)],
        [one.text for one in kept],
        embeddings,
        [one.about for one in kept],
        dict(given.left_out),
        of_responses=False,
        open_encoder=lambda: encoder,
    )


def _core(entry: Entry) -> str:
    return core_of(entry.said or entry.text, entry.about.get("author", ""))


def _of_index(path: Path, encoder: Model, wanted: Wanted, threads: int | None) -> Collection:
    opened = TextIndex(path)
    ids, texts, about, parts = list[str](), list[str](), list[About](), list[Embeddings]()
    for part in opened.encoded():
        rows = [row for row, one in enumerate(part.known) if wanted(part.texts[row], one)]
        ids += [str(part.ids[row]) for row in rows]
        texts += [part.texts[row] for row in rows]
        about += [part.known[row] for row in rows]
        parts.append(np.asarray(part.embeddings[rows], np.float32))

    embeddings = joined(parts, opened.manifest.dim)
    first = first_indices(texts)  # equal texts may differ in the last bit
    again = np.flatnonzero(first != np.arange(len(first)))
    embeddings[again] = embeddings[first[again]]

    made = Collection(
        str(path), ids, texts, embeddings, about, {},
        of_responses=opened.manifest.response,
        open_encoder=lambda: encoder_of(opened, encoder, threads),
    )  # fmt: skip
    if encoder is not None:
        _ = made.encoder  # refuses another model
    return made


def encoder_of(opened: TextIndex, encoder: Model, threads: int | None) -> SentenceEncoder:
    """Returns the encoder of an index; a given encoder must be the same model.

    Raises:
        InputError: another model was given, or the index does not say where its model is.
        ModelError: the model can't be loaded.
    """
    loaded = loaded_encoder(place_of_model(opened) if encoder is None else encoder, threads)
    refuse_other_model(opened, loaded.describe())
    return loaded


def joined(parts: list[Embeddings], dim: int) -> Embeddings:
    """Joins parts into one array and empties the list, so that little is in memory twice."""
    rows = np.empty((sum(map(len, parts)), dim), np.float32)
    end = len(rows)
    while parts:
        part = parts.pop()
        rows[end - len(part) : end] = part
        end -= len(part)
    return rows


_MANY = 0.1
"""Share of wanted texts from which the segments' lists are used."""


class WholeIndex:
    """The N texts of an index in the order they were added, without deleted ones.

    Reads only what is used. The model is opened on first use.
    """

    def __init__(self, index: TextIndex, encoder: Model = None, threads: int | None = None) -> None:
        """Prepares to read the state of an opened index."""
        self.name = str(index.folder)
        """The path."""
        self._opened, self._encoder, self._threads = index, encoder, threads
        self._segments, self._dim = index.segments, index.manifest.dim
        self._rows = [np.flatnonzero(~segment.deleted) for segment in self._segments]
        self._begins = np.cumsum([0, *map(len, self._rows)])
        self.ids: Sequence[str] = _Column(self, lambda one, row: one.ids[row])
        self.texts: Sequence[str] = _Column(self, lambda one, row: one.texts[row])
        self.about: Sequence[About] = _Column(self, Segment.about)

    def __len__(self) -> int:
        return int(self._begins[-1])

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The model of the embeddings.

        Raises:
            InputError: another model was given, or the index does not say where its model is.
            ModelError: the model can't be loaded.
        """
        return encoder_of(self._opened, self._encoder, self._threads)

    def rows(self, places: Indices) -> Embeddings:
        """Returns the (K, D) float32 embeddings of the texts at (K,) positions."""
        found = np.empty((len(places), self._dim), np.float32)
        numbers = np.searchsorted(self._begins, places, side="right") - 1
        for number in np.unique(numbers).tolist():
            here = numbers == number
            rows = self._rows[number][places[here] - self._begins[number]]
            found[here] = self._segments[number].embeddings[rows]
        return found

    def nearest(
        self, queries: Embeddings, most: int, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[Indices, Embeddings]]:
        """Yields for each query the positions and cosines of the nearest `wanted` texts.

        Where many texts are wanted and segments have lists, the search may miss a near one.

        Args:
            queries: (Q, D) float32, unit or zero rows.
            most: Number of texts per query.
            wanted: (N,) bool.

        Raises:
            InputError: the index is damaged.
            MissingExtraError: a segment has lists, and FAISS is not installed.
        """
        share = np.count_nonzero(wanted) / max(len(wanted), 1)
        if share >= _MANY and any(one.lists for one in self._segments):
            deleted = [one.absent() for one in self._segments]
            # of the nearest texts, as many are wanted as of all, or less
            top_k = math.ceil(most / share)
            found = search_segments(self._segments, queries, top_k, absent=deleted)
            for one in found:
                places, scores = self._placed(one)
                kept = wanted[places]
                yield places[kept][:most], scores[kept][:most]
            return
        absent = [np.ones(one.entry.rows, np.bool_) for one in self._segments]
        for number, rows in enumerate(self._rows):
            begin = self._begins[number]
            absent[number][rows[wanted[begin : begin + len(rows)]]] = False
        found = search_segments(self._segments, queries, most, absent=absent, exact=True)
        yield from map(self._placed, found)

    def _placed(self, found: Found) -> tuple[Indices, Embeddings]:
        """Returns the positions of the found texts, and the scores."""
        numbers, rows = segments_and_rows(found.places)
        places = np.empty(len(rows), np.int64)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            known = np.searchsorted(self._rows[number], rows[here])
            places[here] = self._begins[number] + known
        return places, np.asarray(found.scores, np.float32)

    def meeting(self, conditions: Conditions) -> NDArray[np.bool_]:
        """Returns (N,) bool: which texts meet conditions.

        Raises:
            InputError: a file was changed.
        """
        found = [
            np.zeros(len(rows), np.bool_)
            if (absent := one.absent(conditions)) is None
            else ~absent[rows]
            for one, rows in zip(self._segments, self._rows, strict=True)
        ]
        return np.concatenate([np.empty(0, np.bool_), *found])

    def at(self, place: int) -> tuple[Segment, int]:
        """Returns the segment of a text, and its row in it."""
        number = int(np.searchsorted(self._begins, place, side="right")) - 1
        return self._segments[number], int(self._rows[number][place - self._begins[number]])


class _Column(Sequence[Any]):
    """Values of the texts of an index."""

    def __init__(self, whole: WholeIndex, read: Callable[[Segment, int], Any]) -> None:
        self._whole, self._read = whole, read

    def __len__(self) -> int:
        return len(self._whole)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(f"{place} is not among {len(self):,}")
        return self._read(*self._whole.at(place))
