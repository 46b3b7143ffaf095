"""`Topics`: what texts are about, with the topic of each; saved and loaded."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.inference.topic import Topic
from rejoinder.inference.topic_map import TopicMap
from rejoinder.inference.topics import TopicCentres
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.hashed import check_file, file_facts, read_sealed, sealed_text
from rejoinder.io.formats.decoding import Count, Record
from rejoinder.io.formats.shown import MOST_ROWS, Shown, View
from rejoinder.io.formats.tensor_files import UNREADABLE
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

FILE, _MESSAGES, _CENTRES = "topics.json", "messages.jsonl", "centres.safetensors"
_VERSION = 1
_REMEDY = "Write it again with rejoinder cluster."


class ModelFacts(Record, frozen=True):
    """The model whose embeddings were clustered."""

    name: str
    sha256: str
    adaptation: str | None
    of_responses: bool


class _Manifest(Record, frozen=True):
    model: ModelFacts
    seed: Count
    topics: tuple[Topic, ...]
    wider: tuple[Topic, ...]
    files: dict[str, dict[str, Any]]


class _Message(Record, frozen=True):
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
    """Topics that hold several topics."""
    labels: Indices
    """(N,) int64: the topic of each message; -1: none."""
    coordinates: Embeddings
    """(N, 2) float32: a place on a map for each message, from -1 to 1. Topics are discs there."""
    ids: list[str]
    texts: list[str]
    times: NDArray[np.float64]
    """(N,) float64: seconds since 1970 in UTC, or NaN."""
    centres: TopicCentres
    map: TopicMap
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
        """All messages a month."""
        return months_of(self.times)

    def shares(self, topic: Topic) -> dict[str, float]:
        """Returns the share of a topic in the messages of each month, from 0 to 1."""
        return {month: topic.months.get(month, 0) / count for month, count in self.months.items()}

    def members(self, topic: Topic) -> Indices:
        """Returns the indices of the messages of a topic or a wider one."""
        inside = [one.id for one in self.topics if topic.id in (one.id, one.parent)]
        return np.flatnonzero(np.isin(self.labels, inside))

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

        The same topics give the same bytes.

        Args:
            folder: Where to write it.
            overwrite: Replace what `folder` holds.
            inputs: Where the texts come from; `folder` must not contain them.

        Raises:
            InputError: the folder is occupied, and `overwrite` is False, or an input is in it.
            BusyError: another command is writing it.
            StorageError: it can't be written.
        """
        from safetensors.numpy import save_file

        with new_folder(Path(folder), overwrite=overwrite, inputs=inputs) as new:
            lines = map(msgspec.json.encode, self._messages())
            (new / _MESSAGES).write_bytes(b"".join(line + b"\n" for line in lines))
            save_file({**vars(self.centres), **vars(self.map)}, new / _CENTRES)
            facts = file_facts(new, [_MESSAGES, _CENTRES])
            manifest = _Manifest(self.model, self.seed, self.topics, self.wider, facts)
            (new / FILE).write_text(sealed_text(manifest, _VERSION), "utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "Topics":
        """Reads what `save` wrote.

        Raises:
            InputError: the folder holds no topics, or a file is damaged.
        """
        from safetensors.numpy import load_file

        path = Path(folder)
        manifest = read_sealed(
            path / FILE, _Manifest, _VERSION, InputError, _REMEDY,
            unreadable=f"{path} has no topics",
        )  # fmt: skip
        for name in (_MESSAGES, _CENTRES):
            check_file(path / name, manifest.files.get(name), InputError, _REMEDY)
        try:
            lines = (path / _MESSAGES).read_bytes().split(b"\n")[:-1]
            messages = list(map(msgspec.json.Decoder(_Message).decode, lines))
            tensors = load_file(path / _CENTRES)
            centres = TopicCentres(**{one.name: tensors[one.name] for one in fields(TopicCentres)})
            discs = TopicMap(**{one.name: tensors[one.name] for one in fields(TopicMap)})
        except UNREADABLE as error:
            raise InputError(f"{path} is damaged: {error}. {_REMEDY}") from None
        return cls(
            manifest.topics,
            manifest.wider,
            np.array([one.topic for one in messages], np.int64),
            np.array([(one.x, one.y) for one in messages], np.float32).reshape(-1, 2),
            [one.id for one in messages],
            [one.text for one in messages],
            np.array([np.nan if one.time is None else one.time for one in messages], np.float64),
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
    """Returns how many of (N,) times, seconds since 1970 in UTC or NaN, are in each month.

    >>> months_of(np.array([0.0, np.nan, 86_400 * 31.0, 5.5]))
    {'1970-01': 2, '1970-02': 1}
    """
    known = times[np.isfinite(times)].astype("datetime64[s]").astype("datetime64[M]")
    months, counts = np.unique(known, return_counts=True)
    return dict(zip(np.datetime_as_string(months).tolist(), counts.tolist(), strict=True))
