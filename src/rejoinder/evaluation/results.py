"""Results of evaluation tasks: the scores, and what they depend on."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import first_repeated
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics import metric_of
from rejoinder.evaluation.metrics.base import Metric
from rejoinder.io.files.hashed import sealed
from rejoinder.io.formats.shown import Shown, View

Key = tuple[str, str, str, str]
"""Task, split, SHA-256 of the data, settings as JSON. With the encoder, these decide a result."""


@dataclass(frozen=True)
class Group:
    """The scores of a part of the data, such as a genre or a source."""

    n: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Scored:
    """What a task finds on one split. `score_tasks` makes a `Result` of it."""

    main: str
    """Name of the main score."""
    scores: Mapping[str, float]
    items: Items
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """95 % intervals by name of score."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Scores by genre or source."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The name of the data and other facts; the SHA-256 is added."""
    notes: Sequence[str] = ()


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """The scores of one task on one split, with everything that they depend on."""

    task: str
    split: str
    n: int
    main: str
    """Name of the main score."""
    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    """95 % intervals by name of score."""
    groups: Mapping[str, Group]
    """Scores by genre or source."""
    seed: int
    data: Mapping[str, Any]
    """The data that was scored on: its name, form and SHA-256."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    """The encoder's description of itself, with its training data."""
    dtype: str | None = None
    """dtype of the embeddings that the encoder returned. None if it returned similarities, or if
    all embeddings came from a cache."""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    predictions: Mapping[str, str] = field(default_factory=dict)
    """The file of the items, next to the results file, and its SHA-256."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that act on the task. Results under other settings are other results."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """The request to `evaluate`, so that it can be repeated. Empty if that is not possible."""
    items: Items | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """Identifies the result among those of the same encoder."""
        return (self.task, self.split, str(self.data.get("sha256")), settings_key(self.settings))

    @property
    def in_percent(self) -> bool:
        """Whether the main score goes from 0 to 100 instead of 0 to 1."""
        return self.metric.percent

    @property
    def metric(self) -> Metric:
        """The metric of the main score."""
        return metric_of(self.main)

    def view(self) -> View:
        """Returns all scores."""
        rows = [
            (name, f"{value:.4f}", *(f"{end:.4f}" for end in self.intervals.get(name, ())))
            for name, value in self.scores.items()
        ]
        cells = [(*row, "", "")[:4] for row in rows]
        title = f"{self.task} on {self.split}, {self.n:,} items"
        return View(title, ("score", "value", "95 % from", "to"), cells)

    def __post_init__(self) -> None:
        where = f"{self.task} on {self.split}"
        metric_of(self.main)  # raises an error now, not when the results file is read
        for name, value in self.scores.items():
            if not math.isfinite(value):
                raise InputError(f"{where}: {name} is {value}.")
        repeated = None if self.items is None else first_repeated(self.items.ids)
        if repeated is not None:
            raise InputError(
                f"{where}: the id {repeated!r} is in the data more than once; items are compared "
                "by their ids: each needs its own."
            )
        if self.main not in self.scores:
            raise InputError(f"{where}: the main score {self.main} is not among the scores.")

    def as_tree(self) -> dict[str, Any]:
        """Returns the result as JSON holds it, without its items."""
        tree = asdict(replace(self, items=None))
        del tree["items"]
        return tree

    @cached_property
    def text(self) -> str:
        """The result in a results file: made once, and written again after each later task."""
        text = json.dumps(sealed(self.as_tree()), indent=1, allow_nan=False)
        return "  " + text.replace("\n", "\n  ")


@dataclass(frozen=True)
class Missing:
    """A task that could not be scored because its data is missing."""

    task: str
    reason: str


def settings_key(settings: Mapping[str, Any]) -> str:
    """Returns settings as one string that is the same for the same settings."""
    return json.dumps(settings, sort_keys=True)
