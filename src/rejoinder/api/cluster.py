"""`cluster`: what texts are about. Topics are found, or kept for texts that are added."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from rejoinder.api.collection import Collection, Given, Model, open_collection
from rejoinder.api.topics import ModelFacts, Topics, months_of
from rejoinder.corpus.core_text import core_of
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.index.where import Where
from rejoinder.inference.inputs import whole_number
from rejoinder.inference.topic import Topic
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
    """Finds the topics of texts, and wider topics that hold several.

    Messages of everyday words alone, such as "Thanks!", have no topic. Texts with the same words
    count once where topics are found. The same texts, settings and seed give the same topics.

    Args:
        source: A file of texts, an export, a folder of pairs, an index, texts, or a `Collection`.
        encoder: The model, its name or folder. Default: that of an index, or `rejoinder-base`.
        topics: About how many topics to find. Default: as many as the texts have at one resolution.
        least: The least number of different texts of a topic. Default: 10, or a fiftieth of fewer
            than 500, but at least 3.
        seed: Seed of all random draws. Default: 0.
        keep: Topics that were found before. They stay, with their messages, and each text that is
            not there goes to the nearest topic, or to none. Of messages with the same id, the new
            text counts; texts without ids replace nothing. Sizes and months change.
        columns: Columns of a table or fields of JSON lines, as `text=COLUMN,id=COLUMN`.
        where: Keep only messages that meet all conditions, see `Index.search`.
        threads: Number of CPU cores; None means all that the process may use.
        progress: Called with the name of a stage, how much of it is done, and the total or None.

    Raises:
        InputError: the source can't be read or has no texts, an argument is not valid or has no
            effect, or the topics to keep were found with another model.
        ModelError: the model can't be loaded.
        MissingExtraError: a package of the extra `explore`, or one that reads the source, is
            missing.
    """
    if not isinstance(source, Collection):
        source = open_collection(
            source, encoder, columns=columns, where=where, threads=threads,
            progress=lambda done, _read, _size: progress("encoding", done, None),
        )  # fmt: skip
    elif columns is not None or where is not None or encoder is not None:
        raise InputError("encoder, columns and where are for a source that is yet to be opened.")
    if keep is None:
        return _found(source, topics, least, seed or 0, threads or default_workers(), progress)
    if (topics, least, seed) != (None, None, None):
        raise InputError("topics, least and seed are for topics to find, and keep has topics.")
    return _added(keep, source)


def _found(
    collection: Collection,
    topics: int | None,
    least: int | None,
    seed: int,
    workers: int,
    progress: ExtractProgress,
) -> Topics:
    wanted = None if topics is None else whole_number("topics", topics)
    smallest = None if least is None else whole_number("least", least)
    progress("words", 0, len(collection))
    words = _words(collection, range(len(collection)))
    rows = collection.embeddings
    distinct = np.flatnonzero(
        (words.firsts == np.arange(len(rows))) & words.says & rows.any(axis=1)
    )
    if smallest is None:
        smallest = min(_MOST_LEAST, max(len(distinct) // 50, 3))
    centres, found = find_topics(
        rows[distinct], wanted, least=smallest, seed=seed, workers=workers,
        progress=lambda *done: progress("comparing", *done),
    )  # fmt: skip
    labels = _of_all(words, distinct, found)
    named = distinctive_words(words, labels, len(centres))
    telling = [sum([*scores.values()][:_NAME]) >= _NAMED for scores in named]
    centres, labels = centres.only(np.array(telling, np.bool_), labels)
    progress("map", 0, None)
    discs = map_of(centres, np.bincount(labels[labels >= 0], minlength=len(centres)), seed)
    times = _times(collection)
    leaves, wider = _records(collection, words, centres, labels, times)
    return Topics(
        leaves, wider, labels, discs.place(rows, labels, centres), list(collection.ids),
        list(collection.texts), times, centres, discs, _facts(collection), seed,
    )  # fmt: skip


def _added(topics: Topics, collection: Collection) -> Topics:
    """Returns topics with more messages, each of which goes to the nearest topic, or to none."""
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
    names = _names(collection, fresh, known)
    again = {*names}
    kept = np.flatnonzero([name not in again for name in topics.ids])
    new = np.array(fresh, np.int64)
    words = _words(collection, fresh)
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
        ids=[*(topics.ids[row] for row in kept.tolist()), *names],
        texts=[
            *(topics.texts[row] for row in kept.tolist()),
            *(collection.texts[row] for row in fresh),
        ],
        times=times,
    )


def _names(collection: Collection, fresh: list[int], known: Mapping[str, str]) -> list[str]:
    """Returns the ids of rows. Taken ones that are only numbers of lines become free numbers."""
    names = [collection.ids[row] for row in fresh]
    if collection.ids != [str(number) for number in range(1, len(collection) + 1)]:
        return names
    numbers = (int(name) for name in [*known, *collection.ids] if name.isdecimal())
    free = count(max(numbers, default=0) + 1)
    return [str(next(free)) if name in known else name for name in names]


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
    return replace(topic, size=int(members.sum()), months=months_of(times[members]))


def _children(topics: tuple[Topic, ...], parent: int) -> list[int]:
    return [one.id for one in topics if one.parent == parent]


def _of_all(words: TextWords, distinct: Indices, found: Indices) -> Indices:
    """Returns (N,) the topics of all texts, from those of `distinct` ones."""
    labels = np.full(len(words.firsts), -1, np.int64)
    labels[distinct] = found
    return labels[words.firsts]


def _words(collection: Collection, rows: Sequence[int]) -> TextWords:
    """Returns the words of texts without signatures, which have several lines."""
    texts = [collection.texts[row] for row in rows]
    authors = [collection.about[row].get("author") or "" for row in rows]
    parts = [
        core_of(text, author) if "\n" in text else text
        for text, author in zip(texts, authors, strict=True)
    ]
    return words_of(parts, authors)


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
