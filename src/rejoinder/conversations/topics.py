"""`Topics`: the topics of texts, with the topic of each text; saved and loaded.

Also defines the records of topics.

`cluster` finds topics, or keeps known ones for texts that are added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.conversations import topic_words
from rejoinder.conversations.clusters import TopicCentres, find_topics, typical_rows, wider_topics
from rejoinder.conversations.collection import Collection, Given, Model, open_collection
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.index.where import Where
from rejoinder.inference.inputs import whole_number
from rejoinder.io.files import hashed
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.system import default_workers
from rejoinder.io.formats.embedding_files import UNREADABLE
from rejoinder.io.formats.shown import MOST_ROWS, Shown, View
from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings


@dataclass(frozen=True)
class Topic:
    """A topic, or a wider one."""

    id: hashed.Count
    """Topics are numbered from 0 on, the largest first; wider ones follow."""
    name: str
    """Its three most distinctive words."""
    words: tuple[str, ...]
    """Distinctive words, the best first."""
    typical: tuple[str, ...]
    """Typical messages, the best first."""
    typical_ids: tuple[str, ...]
    """Their ids."""
    size: hashed.Count
    """Number of messages."""
    parent: hashed.Count | None
    """The id of its wider topic, if that contains other topics, too."""
    months: dict[str, hashed.Count]
    """Messages per month, such as `2024-01`, in UTC, where the time is known."""


@dataclass(frozen=True)
class FoundTopics:
    """Topics found in messages."""

    topics: tuple[Topic, ...]
    wider: tuple[Topic, ...]
    """Wider topics, each of several topics."""
    months: dict[str, hashed.Count]
    """All messages per month."""


FILE, _MESSAGES, _CENTRES = "topics.json", "messages.jsonl", "centres.safetensors"
_VERSION = 1
_REMEDY = "Write it again with rejoinder cluster."


class ModelFacts(hashed.Record, frozen=True):
    """The model whose embeddings were clustered."""

    name: str
    sha256: str
    adaptation: str | None
    of_responses: bool


class _Manifest(hashed.Record, frozen=True):
    model: ModelFacts
    seed: hashed.Count
    topics: tuple[Topic, ...]
    wider: tuple[Topic, ...]
    files: dict[str, dict[str, Any]]


class _Message(hashed.Record, frozen=True):
    id: str
    topic: int
    x: float
    y: float
    time: float | None
    text: str


@dataclass(frozen=True, repr=False)
class Topics(Shown):
    """T topics of N messages, within wider topics."""

    topics: tuple[Topic, ...]
    """The topics by falling size; an id is an index."""
    wider: tuple[Topic, ...]
    """Wider topics, each of several topics."""
    labels: Indices
    """(N,) int64: the topic of each message; -1 for none."""
    coordinates: Embeddings
    """(N, 2) float32: the place of each message on a map, from -1 to 1. Topics are discs there."""
    ids: list[str]
    texts: list[str]
    times: NDArray[np.float64]
    """(N,) float64: seconds since 1970 in UTC, or NaN."""
    centres: TopicCentres
    map: topic_words.TopicMap
    model: ModelFacts
    seed: int

    def __len__(self) -> int:
        return len(self.topics)

    def view(self) -> View:
        """Returns the largest topics."""
        rows = [(topic.name, topic.size, *topic.typical[:1]) for topic in self.topics[:MOST_ROWS]]
        title = (
            f"{len(self):,} topics of {len(self.texts):,} messages, of which "
            f"{int((self.labels < 0).sum()):,} have none"
        )
        return View(title, ("topic", "messages", "typical"), rows, len(self))

    @property
    def months(self) -> dict[str, int]:
        """All messages per month."""
        return months_of(self.times)

    def shares(self, topic: Topic) -> dict[str, float]:
        """Returns a topic's share of the messages of each month, from 0 to 1."""
        return {month: topic.months.get(month, 0) / count for month, count in self.months.items()}

    def members(self, topic: Topic) -> Indices:
        """Returns the indices of the messages of a topic or a wider one."""
        inside = [one.id for one in self.topics if topic.id in (one.id, one.parent)]
        return np.flatnonzero(np.isin(self.labels, inside))

    def only(self, texts: Mapping[str, str]) -> "Topics":
        """Returns the topics, keeping only messages with these ids and texts."""
        known = zip(self.ids, self.texts, strict=True)
        return self.at(np.flatnonzero([texts.get(name) == text for name, text in known]))

    def at(self, rows: Indices) -> "Topics":
        """Returns the topics, keeping only some of the messages."""
        return replace(
            self,
            labels=self.labels[rows],
            coordinates=self.coordinates[rows],
            ids=[self.ids[row] for row in rows.tolist()],
            texts=[self.texts[row] for row in rows.tolist()],
            times=self.times[rows],
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns a row for each message: id, topic, name (of the topic), x, y, time, text."""
        names = [*(topic.name for topic in self.topics), ""]
        return [
            {"id": one.id, "topic": one.topic, "name": names[one.topic], "x": one.x, "y": one.y,
             "time": one.time, "text": one.text}
            for one in self._messages()
        ]  # fmt: skip

    def topic_dicts(self) -> list[dict[str, Any]]:
        """Returns a row for each topic, then for each wider one, with the fields of `Topic`."""
        rows: list[dict[str, Any]] = msgspec.to_builtins([*self.topics, *self.wider])
        return rows

    def save(
        self, folder: str | Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
    ) -> None:
        """Writes a folder: `topics.json`, `messages.jsonl` and `centres.safetensors`.

        Equal topics give equal bytes.

        Args:
            folder: Where to write it.
            overwrite: Replace what `folder` holds.
            inputs: Sources of the texts; `folder` must not contain them.

        Raises:
            InputError: the folder is occupied and `overwrite` is False, or an input is in it.
            BusyError: another command is writing it.
            StorageError: it can't be written.
        """
        from safetensors.numpy import save_file

        with new_folder(Path(folder), overwrite=overwrite, inputs=inputs) as new:
            (new / _MESSAGES).write_bytes(msgspec.json.Encoder().encode_lines(self._messages()))
            save_file({**vars(self.centres), **vars(self.map)}, new / _CENTRES)
            facts = hashed.file_facts(new, [_MESSAGES, _CENTRES])
            manifest = _Manifest(self.model, self.seed, self.topics, self.wider, facts)
            (new / FILE).write_text(hashed.sealed_text(manifest, _VERSION), "utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "Topics":
        """Reads what `save` wrote.

        Raises:
            InputError: the folder holds no topics, or a file is damaged.
        """
        from safetensors.numpy import load_file

        path = Path(folder)
        manifest = hashed.read_sealed(
            path / FILE, _Manifest, _VERSION, InputError, _REMEDY,
            unreadable=f"{path} has no topics",
        )  # fmt: skip
        for name in (_MESSAGES, _CENTRES):
            hashed.check_file(path / name, manifest.files.get(name), InputError, _REMEDY)
        try:
            messages = msgspec.json.Decoder(_Message).decode_lines((path / _MESSAGES).read_bytes())
            tensors = load_file(path / _CENTRES)
            centres = TopicCentres(
                **{one.name: tensors.pop(one.name) for one in fields(TopicCentres)}
            )
            discs = topic_words.TopicMap(**tensors)
        except UNREADABLE as error:
            raise InputError(f"{path} is damaged: {error}. {_REMEDY}") from None
        names, labels, x, y, times, texts = (
            [getattr(one, name) for one in messages] for name in _Message.__struct_fields__
        )
        return cls(
            manifest.topics,
            manifest.wider,
            np.array(labels, np.int64),
            np.array([x, y], np.float32).T,
            names,
            texts,
            np.array(times, np.float64),
            centres,
            discs,
            manifest.model,
            manifest.seed,
        )

    def _messages(self) -> list[_Message]:
        places = np.round(self.coordinates.astype(np.float64), 4).tolist()
        times = [None if time != time else time for time in self.times.tolist()]
        return [
            _Message(name, topic, x, y, time, text)
            for name, topic, (x, y), time, text in zip(
                self.ids, self.labels.tolist(), places, times, self.texts, strict=True
            )
        ]


def months_of(times: NDArray[np.float64]) -> dict[str, int]:
    """Returns for each month how many of (N,) times, seconds since 1970 in UTC or NaN, are in it.

    >>> months_of(np.array([0.0, np.nan, 86_400 * 31.0, 5.5]))
    {'1970-01': 2, '1970-02': 1}
    """
    known = times[np.isfinite(times)].astype("datetime64[s]").astype("datetime64[M]")
    months, counts = np.unique(known, return_counts=True)
    return dict(zip(np.datetime_as_string(months).tolist(), counts.tolist(), strict=True))


_NAME = 3
"""Number of words in a name."""
_NAMED = 0.5
"""Least sum of the scores of these words; a group that they hardly set apart is not a topic."""
_TYPICAL = 3
_MOST_LEAST = 10
"""Least messages of a topic if there are 500 or more; a fiftieth of fewer."""


def cluster(
    source: Given | Collection,
    encoder: Model = None,
    *,
    topics: int | None = None,
    least: int | None = None,
    seed: int | None = None,
    keep: Topics | None = None,
    columns: str | None = None,
    where: Where | None = None,
    threads: int | None = None,
    progress: ExtractProgress = lambda _stage, _done, _all: None,
) -> Topics:
    """Finds the topics of texts, and wider topics of several each.

    Messages with only everyday words, such as "Thanks!", have no topic. Texts with the same words
    count once when topics are found. The same texts, settings and seed give the same topics.

    Args:
        source: A file of texts, an export, a folder of pairs, an index, texts, or a `Collection`.
        encoder: The model, its name or folder. Default: from an index, or by language.
        topics: About how many topics to find. Default: as many as the texts have at one resolution.
        least: The least number of different texts of a topic. Default: 10, or a fiftieth of fewer
            than 500, but at least 3.
        seed: Seed of all random draws. Default: 0.
        keep: Topics that were found before. They stay, with their messages, and each new text
            goes to the nearest topic, or to none. For messages with the same id, the new
            text counts; texts without ids replace nothing. Sizes and months change.
        columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
        where: Keep only messages that meet all conditions, see `Index.search`.
        threads: Number of CPU cores; None means all that the process may use.
        progress: Called with the name of a stage, how much of it is done, and the total or None.

    Raises:
        InputError: the source can't be read or has no texts, an argument is not valid or has no
            effect, or the topics in `keep` were found with another model.
        ModelError: the model can't be loaded.
        MissingExtraError: the extra `explore` or a package to read the source is not installed.
    """
    collection = open_collection(
        source,
        encoder,
        columns=columns,
        where=where,
        threads=threads,
        progress=lambda done, _read, _size: progress("encoding", done, None),
    )
    if keep is not None:
        if (topics, least, seed) != (None, None, None):
            raise InputError("topics, least and seed have no effect with keep; leave them out.")
        return _added(keep, collection)
    wanted = None if topics is None else whole_number("topics", topics)
    smallest = None if least is None else whole_number("least", least)
    seed = seed or 0
    progress("words", 0, len(collection))
    words = _words(collection, range(len(collection)))
    rows = collection.embeddings
    distinct = np.flatnonzero(
        (words.firsts == np.arange(len(rows))) & words.says & rows.any(axis=1)
    )
    if smallest is None:
        smallest = min(_MOST_LEAST, max(len(distinct) // 50, 3))
    centres, found = find_topics(
        rows[distinct], wanted, least=smallest, seed=seed, workers=threads or default_workers(),
        progress=lambda *done: progress("comparing", *done),
    )  # fmt: skip
    labels = np.full(len(rows), -1, np.int64)
    labels[distinct] = found
    labels = labels[words.firsts]
    named = topic_words.distinctive_words(words, labels, len(centres))
    telling = [sum([*scores.values()][:_NAME]) >= _NAMED for scores in named]
    centres, labels = centres.only(np.array(telling, np.bool_), labels)
    progress("map", 0, None)
    discs = topic_words.map_of(
        centres, np.bincount(labels[labels >= 0], minlength=len(centres)), seed
    )
    leaves, wider = _records(collection, words, centres, labels)
    return Topics(
        leaves, wider, labels, discs.place(rows, labels, centres), list(collection.ids),
        list(collection.texts), _times(collection), centres, discs, _facts(collection), seed,
    )  # fmt: skip


def _added(topics: Topics, collection: Collection) -> Topics:
    """Returns topics with more messages, each in the nearest topic, or in none."""
    if (given := _facts(collection)) != topics.model:
        raise InputError(
            f"the topics were found with {_named(topics.model)}, not with {_named(given)}."
        )
    known = dict(zip(topics.ids, topics.texts, strict=True))
    fresh = [
        row
        for row, (name, text) in enumerate(zip(collection.ids, collection.texts, strict=True))
        if known.get(name) != text
    ]
    names = _names(collection, fresh, known)
    again = {*names}
    kept = topics.at(np.flatnonzero([name not in again for name in topics.ids]))
    new = np.array(fresh, np.int64)
    rows = collection.embeddings[new]
    labels = np.where(_words(collection, fresh).says, topics.centres.nearest(rows), -1)
    places = topics.map.place(rows, labels, topics.centres)
    labels = np.concatenate([kept.labels, labels])
    times = np.concatenate([kept.times, _times(collection)[new]])
    return replace(
        kept,
        topics=tuple(_counted(topics.topics, topics.topics, labels, times)),
        wider=tuple(_counted(topics.wider, topics.topics, labels, times)),
        labels=labels,
        coordinates=np.concatenate([kept.coordinates, places]),
        times=times,
        ids=[*kept.ids, *names],
        texts=[*kept.texts, *(collection.texts[row] for row in fresh)],
    )


def _names(collection: Collection, fresh: list[int], known: Mapping[str, str]) -> list[str]:
    """Returns the ids of rows. Taken ids that are only line numbers become free numbers."""
    names = [collection.ids[row] for row in fresh]
    if collection.ids != [str(number) for number in range(1, len(collection) + 1)]:
        return names
    numbers = (int(name) for name in [*known, *collection.ids] if name.isdecimal())
    free = count(max(numbers, default=0) + 1)
    return [str(next(free)) if name in known else name for name in names]


def _records(
    collection: Collection, words: topic_words.TextWords, centres: TopicCentres, labels: Indices
) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """Returns topics and wider topics with their names, typical messages and sizes."""
    first, times = len(centres), _times(collection)
    parents = wider_topics(centres)
    by_wider = np.append(parents, -1)[labels]
    lengths = words.numbers.lengths
    leaves, wider, typical = list[Topic](), list[Topic](), list[list[int]]()
    for topic, scores in enumerate(topic_words.distinctive_words(words, labels, first)):
        members = np.flatnonzero((labels == topic) & (words.firsts == np.arange(len(labels))))
        rows = collection.embeddings[members]
        best = typical_rows(rows, centres.centres[topic], lengths[members])
        typical.append(members[best].tolist())
        parent = None if parents[topic] < 0 else first + int(parents[topic])
        leaves.append(_topic(collection, topic, list(scores), typical[topic], parent))
    for number, scores in enumerate(
        topic_words.distinctive_words(words, by_wider, int(parents.max(initial=-1)) + 1)
    ):
        children = np.flatnonzero(parents == number)[:_TYPICAL].tolist()
        best = [typical[one][0] for one in children]
        wider.append(_topic(collection, first + number, list(scores), best, None))
    return (
        tuple(_counted(leaves, leaves, labels, times)),
        tuple(_counted(wider, leaves, labels, times)),
    )


def _topic(
    collection: Collection, number: int, words: list[str], best: list[int], parent: int | None
) -> Topic:
    return Topic(
        number, ", ".join(words[:_NAME]), tuple(words),
        tuple(collection.texts[row] for row in best), tuple(collection.ids[row] for row in best),
        0, parent, {},
    )  # fmt: skip


def _counted(
    topics: Iterable[Topic], leaves: Sequence[Topic], labels: Indices, times: Floats
) -> Iterator[Topic]:
    """Yields topics with their number of messages, including messages of the leaves below them."""
    for topic in topics:
        inside = [one.id for one in leaves if topic.id in (one.id, one.parent)]
        members = np.isin(labels, inside)
        yield replace(topic, size=int(members.sum()), months=months_of(times[members]))


def _words(collection: Collection, rows: Sequence[int]) -> topic_words.TextWords:
    authors = [collection.about[row].get("author") or "" for row in rows]
    texts = [collection.gists[row] for row in rows]
    return topic_words.words_of(texts, authors, collection.encoder.encode)


def _times(collection: Collection) -> Floats:
    return np.array(collection.column("time"), np.float64)  # None becomes NaN


def _facts(collection: Collection) -> ModelFacts:
    about = collection.encoder.describe()
    adaptation = about["adaptation"]
    return ModelFacts(
        about["name"], about["sha256"], adaptation and adaptation["sha256"],
        collection.of_responses,
    )  # fmt: skip


def _named(model: ModelFacts) -> str:
    side = " as responses" if model.of_responses else ""
    return f"{model.name} (SHA-256 {model.sha256[:12]}…){side}"
