"""A result: what was scored, how well, on what; as JSON and as a table."""

import datetime
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rejoinder.atomic import write_text
from rejoinder.errors import InputError
from rejoinder.version import VERSION

FORMAT = 1


@dataclass(frozen=True)
class Group:
    """Figures of a part of the data."""

    n: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """Figures of one task on one split."""

    task: str
    split: str
    n: int
    main: str
    """Name of the main score."""
    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    """95 % intervals, by name of score."""
    groups: Mapping[str, Group]
    """By genre or source."""
    seed: int
    data: Mapping[str, Any]
    """What was scored on: form, SHA-256."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    """Identity of the encoder, its training data among it."""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.scores.items():
            if not math.isfinite(value):
                raise InputError(f"{self.task} on {self.split}: {name} is {value}.")


def stamp(result: Result, encoder: Mapping[str, Any], seconds: float) -> Result:
    """The result with who was scored, when, with what and on what machine."""
    return replace(
        result,
        encoder=encoder,
        seconds=round(seconds, 3),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions={
            "rejoinder": VERSION,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
        },
        machine={
            "platform": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
    )


def write_results(place: Path, results: Sequence[Result]) -> None:
    """Write `results.json`, whole or not at all."""
    tree = {"format_version": FORMAT, "results": [asdict(result) for result in results]}
    write_text(place, json.dumps(tree, indent=1, allow_nan=False) + "\n")


def read_results(place: Path) -> list[Result]:
    """What `write_results` wrote.

    Raises:
        InputError: the file is no such file, or of another format version.
    """
    try:
        tree = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{place} can't be read as results: {error}.") from None
    if not isinstance(tree, dict) or tree.get("format_version") != FORMAT:
        raise InputError(f"{place} is no results file of format version {FORMAT}.")
    results = []
    for row in tree["results"]:
        row["groups"] = {name: Group(**group) for name, group in row["groups"].items()}
        row["intervals"] = {name: tuple(pair) for name, pair in row["intervals"].items()}
        row["notes"] = tuple(row["notes"])
        results.append(Result(**row))
    return results
