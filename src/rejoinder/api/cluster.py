"""`cluster`: what texts are about. New texts go to topics that are there, or all find new ones."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np

from rejoinder.api.collection import Collection, Given, Model, open_collection
from rejoinder.api.topics import ModelFacts, Topic, Topics, months_of
from rejoinder.corpus.core_text import core_of
from rejoinder.errors import InputError
from rejoinder.index.where import Where
from rejoinder.inference.inputs import whole_number
from rejoinder.inference.sentence_stream import EncodingProgress
from rejoinder.inference.topic_map import map_of
from rejoinder.inference.topic_words import TextWords, distinctive_words, words_of
from rejoinder.inference.topics import TopicCentres, find_topics, typical_rows, wider_topics
from rejoinder.io.files.platform import default_workers
from rejoinder.measures import Floats, Indices

_NAME = 3
"""Words of a name."""
_NAMED = 0.5
"""Least sum of the scores of these words: what they do not tell from other texts is not a topic."""
_TYPICAL = 3
_MOST_LEAST = 10
"""Least messages of a topic among 500 and more; a fiftieth of fewer."""

Stage = Callable[[str, int, int], None]
"""Called with a stage of the work, what is done of it, and all of it."""


def cluster(
    source: Given,
    encoder: Model = None,
    *,
    topics: int | None = None,
    least: int | None = None,
    seed: int = 0,
    columns: str | None = None,
    where: Where | None = None,
    threads: int | None = None,
    progress: EncodingProgress = lambda _done, _read, _all: None,
    stage: Stage = lambda _stage, _done, _all: None,
) -> Topics:
    """Finds the topics of texts, and wider topics that hold several.

    Messages of everyday words alone, such as "Thanks!", have no topic; texts with the same words
    count once where topics are found. The same texts, settings and seed give the same topics.

    Args:
        source: An index; a folder of pairs; a file of texts; an export of conversations; or texts.
        encoder: The model, its name or folder. Default: that of the index, or `rejoinder-base`.
        topics: About how many topics to find. Default: as many as the texts have at one resolution.
        least: The least number of different texts of a topic. Default: 10, or fewer for fewer than
            500 texts.
        seed: Seed of all random draws.
        columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
        where: Keep only messages that meet all conditions, see `Index.search`.
        threads: Number of CPU cores; None means all that the process may use.
        progress: Called with how far encoding is.
        stage: Called with how far the work after it is.

    Raises:
        InputError: the source can't be read or has no texts, or an argument is not valid.
        ModelError: the model can't be loaded.
        MissingExtraError: a package of the extra `explore`, or one that reads the source, is
            missing.
    """
    collection = open_collection(
        source, encoder, columns=columns, where=where, threads=threads, progress=progress
    )
    return cluster_collection(
        collection, topics=topics, least=least, seed=seed, threads=threads, stage=stage
    )


def cluster_collection(
    collection: Collection,
    *,
    topics: int | None = None,
    least: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    stage: Stage = lambda _stage, _done, _all: None,
) -> Topics:
    """Finds the topics of an open collection; see `cluster`."""
    count = None if topics is None else whole_number("topics", topics)
    smallest = None if least is None else whole_number("least", least)
    stage("words", 0, len(collection))
    words = words_of(_cores(collection))
    rows = collection.embeddings
    distinct = np.flatnonzero(
        (words.firsts == np.arange(len(rows))) & words.says & rows.any(axis=1)
    )
    if smallest is None:
        smallest = min(_MOST_LEAST, max(len(distinct) // 50, 3))
    centres, found = find_topics(
        rows[distinct], count, least=smallest, seed=seed, workers=threads or default_workers(),
        progress=stage,
    )  # fmt: skip
    labels = _of_all(words, distinct, found)
    named = distinctive_words(words, labels, len(centres))
    telling = [sum([*scores.values()][:_NAME]) >= _NAMED for scores in named]
    centres, labels = centres.only(np.array(telling, np.bool_), labels)
    stage("map", 0, 1)
    discs = map_of(centres, np.bincount(labels[labels >= 0], minlength=len(centres)), seed)
    times = _times(collection)
    leaves, wider = _records(collection, words, centres, labels, times)
    return Topics(
        leaves, wider, labels, discs.place(rows, labels, centres), collection.ids,
        collection.texts, times, centres, discs, _facts(collection), seed,
    )  # fmt: skip


def add_to_topics(topics: Topics, collection: Collection) -> Topics:
    """Returns topics with more messages, each of which goes to the nearest topic, or to none.

    Messages that are there keep their topics; of those with the same id, the new text counts.
    Topics keep their ids, names, typical messages and places; their sizes and months change.

    Raises:
        InputError: the topics were found with another model.
    """
    if (given := _facts(collection)) != topics.model:
        raise InputError(
            f"the topics were found with {_named(topics.model)}, not with {_named(given)};"
            " give that model, or find topics again."
        )
    known = dict(zip(topics.ids, topics.texts, strict=True))
    fresh = [
        row
        for row, (name, text) in enumerate(zip(collection.ids, collection.texts, strict=True))
        if known.get(name) != text
    ]
    again = {collection.ids[row] for row in fresh}
    kept = np.flatnonzero([name not in again for name in topics.ids])
    new = np.array(fresh, np.int64)
    words = words_of([_cores(collection)[row] for row in fresh])
    rows = collection.embeddings[new]
    labels = np.where(words.says, topics.centres.nearest(rows), -1)
    places = topics.map.place(rows, labels, topics.centres)
    labels = np.concatenate([topics.labels[kept], labels])
    times = np.concatenate([topics.times[kept], _times(collection)[new]])
    return replace(
        topics,
        topics=tuple(_counted(one, labels == one.id, times) for one in topics.topics),
        wider=tuple(
            _counted(one, np.isin(labels, _children(topics.topics, one.id)), times)
            for one in topics.wider
        ),
        labels=labels,
        coordinates=np.concatenate([topics.coordinates[kept], places]),
        ids=[*(topics.ids[row] for row in kept.tolist()), *(collection.ids[row] for row in fresh)],
        texts=[
            *(topics.texts[row] for row in kept.tolist()),
            *(collection.texts[row] for row in fresh),
        ],
        times=times,
    )


def _records(
    collection: Collection,
    words: TextWords,
    centres: TopicCentres,
    labels: Indices,
    times: Floats,
) -> tuple[tuple[Topic, ...], tuple[Topic, ...]]:
    """Returns topics and wider topics with their names, typical messages and sizes."""
    first = len(centres)
    parents = wider_topics(centres)
    by_wider = np.append(parents, -1)[labels]
    lengths = words.numbers.lengths
    leaves: list[Topic] = []
    for topic, scores in enumerate(distinctive_words(words, labels, first)):
        members = np.flatnonzero((labels == topic) & (words.firsts == np.arange(len(labels))))
        rows = collection.embeddings[members]
        best = members[typical_rows(rows, centres.centres[topic], lengths[members])].tolist()
        parent = int(parents[topic])
        leaves.append(
            _topic(collection, topic, list(scores), best, None if parent < 0 else first + parent)
        )
    wider = []
    for number, scores in enumerate(
        distinctive_words(words, by_wider, int(parents.max(initial=-1)) + 1)
    ):
        children = [one for one in leaves if one.parent == first + number][:_TYPICAL]
        places = {name: row for row, name in enumerate(collection.ids)}
        best = [places[one.typical_ids[0]] for one in children]
        wider.append(_topic(collection, first + number, list(scores), best, None))
    return (
        tuple(_counted(one, labels == one.id, times) for one in leaves),
        tuple(_counted(one, by_wider == one.id - first, times) for one in wider),
    )


def _topic(
    collection: Collection, number: int, words: list[str], best: list[int], parent: int | None
) -> Topic:
    return Topic(
        number, ", ".join(words[:_NAME]), tuple(words),
        tuple(collection.texts[row] for row in best), tuple(collection.ids[row] for row in best),
        0, parent, {},
    )  # fmt: skip


def _counted(topic: Topic, members: np.ndarray, times: Floats) -> Topic:
    return msgspec.structs.replace(topic, size=int(members.sum()), months=months_of(times[members]))


def _children(topics: tuple[Topic, ...], parent: int) -> list[int]:
    return [one.id for one in topics if one.parent == parent]


def _of_all(words: TextWords, distinct: Indices, found: Indices) -> Indices:
    """Returns (N,) the topics of all texts, from those of `distinct` ones."""
    labels = np.full(len(words.firsts), -1, np.int64)
    labels[distinct] = found
    return labels[words.firsts]


def _cores(collection: Collection) -> list[str]:
    """Returns texts without greetings and signatures."""
    authors = collection.column("author")
    return [
        core_of(text, author or "") for text, author in zip(collection.texts, authors, strict=True)
    ]


def _times(collection: Collection) -> Floats:
    times = collection.column("time")
    return np.array([np.nan if time is None else time for time in times], np.float64)


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
