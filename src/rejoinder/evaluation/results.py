"""A result: what was scored, how well, on what; as JSON and as a table."""

import datetime
import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from rejoinder.errors import InputError
from rejoinder.evaluation.leak_notes import leak_note
from rejoinder.files.atomic import new_file, write_text
from rejoinder.version import VERSION

FORMAT = 2


@dataclass(frozen=True)
class Items:
    """What was predicted for every item: `compare` and plots work on these."""

    ids: Sequence[str]
    predictions: NDArray[np.float64]
    gold: NDArray[np.float64]
    texts: Sequence[str]
    """What a person reads of the item; not written to disk."""


def subsets_of(ids: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Rows of each subset, the part of an item's id before the last colon."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(ids):
        rows.setdefault(name.rpartition(":")[0], []).append(row)
    return {subset: np.array(places) for subset, places in rows.items()}


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
    dtype: str | None = None
    """Of the embeddings as the encoder returned them; none where it was asked for similarities."""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    predictions: Mapping[str, str] = field(default_factory=dict)
    """The file of the items, beside the results, and its SHA-256."""
    items: Items | None = field(default=None, compare=False)

    @property
    def in_percent(self) -> bool:
        """Whether the main score goes to 100, not to 1."""
        return self.main in ("accuracy", "map", "recall_1_t2i")

    def __post_init__(self) -> None:
        for name, value in self.scores.items():
            if not math.isfinite(value):
                raise InputError(f"{self.task} on {self.split}: {name} is {value}.")


def stamp(result: Result, encoder: Mapping[str, Any], seconds: float) -> Result:
    """The result with who was scored, when, with what and on what machine, and what leaked."""
    note = leak_note(result.task, result.split, encoder)
    return replace(
        result,
        notes=result.notes if note is None else (*result.notes, note),
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


@dataclass(frozen=True)
class Missing:
    """A task that could not run, and why: its data is not there."""

    task: str
    reason: str


def write_results(
    place: Path, results: Sequence[Result], run: Mapping[str, Any] | None = None
) -> list[Result]:
    """Write `results.json` and a Parquet file of items for every result that has some.

    Items go to `<name>.predictions/` beside it, before the results that name them.

    Args:
        place: the results file.
        results: those of one encoder.
        run: how to run the same again.

    Returns:
        The results as written, with the names of their files.
    """
    written = [_write_items(place, result) for result in results]
    tree = {
        "format_version": FORMAT,
        "run": dict(run or {}),
        "results": [as_tree(result) for result in written],
    }
    write_text(place, json.dumps(tree, indent=1, allow_nan=False) + "\n")
    return written


def as_tree(result: Result) -> dict[str, Any]:
    """A result as JSON holds it."""
    tree = asdict(replace(result, items=None))
    del tree["items"]
    return tree


def _write_items(place: Path, result: Result) -> Result:
    if result.items is None or result.predictions:
        return result
    folder = place.with_name(f"{place.stem}.predictions")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{result.task.replace('/', '-')}.{result.split}.parquet"
    frame = pl.DataFrame(
        {
            "id": pl.Series(result.items.ids, dtype=pl.String),
            "prediction": pl.Series(result.items.predictions, dtype=pl.Float64),
            "gold": pl.Series(result.items.gold, dtype=pl.Float64),
        }
    )
    with new_file(folder / name) as file:
        frame.write_parquet(file)
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return replace(result, predictions={"file": f"{folder.name}/{name}", "sha256": digest})


def worst_items(result: Result, count: int) -> list[tuple[str, float, float, str]]:
    """Id, prediction, gold and text of the items that are furthest from gold.

    Of similarities, which have another scale than gold, the ranks are compared.
    """
    items = result.items
    if items is None:
        return []
    if result.main == "accuracy":
        error = (items.predictions != items.gold).astype(np.float64)
    elif result.main.startswith(("P@", "recall_")):
        error = items.predictions
    elif result.main == "map":
        error = items.gold - items.predictions
    else:
        error = np.abs(rankdata(items.predictions) - rankdata(items.gold))
    order = np.argsort(-error, kind="stable")[:count].tolist()
    return [
        (items.ids[row], float(items.predictions[row]), float(items.gold[row]), items.texts[row])
        for row in order
        if error[row] > 0
    ]


def read_items(place: Path, result: Result) -> pl.DataFrame:
    """The items of a result: columns id, prediction, gold.

    Args:
        place: the results file that the result was read from.
        result: one of its results.

    Raises:
        InputError: it has none, or the file is not there or not the one that was written.
    """
    if not result.predictions:
        raise InputError(f"{place}: {result.task} on {result.split} has no predictions file.")
    path = place.parent / result.predictions["file"]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"the predictions of {result.task} can't be read: {error}.") from None
    if hashlib.sha256(content).hexdigest() != result.predictions["sha256"]:
        raise InputError(f"{path} is not the file that {place} was written with; evaluate again.")
    return pl.read_parquet(content)


def read_run(place: Path) -> Mapping[str, Any]:
    """How the results of a file were made.

    Raises:
        InputError: see `read_results`.
    """
    run: Mapping[str, Any] = _tree(place)["run"]
    return run


def read_results(place: Path) -> list[Result]:
    """What `write_results` wrote.

    Raises:
        InputError: the file is no such file, or of another format version.
    """
    results = []
    for row in _tree(place)["results"]:
        row["groups"] = {name: Group(**group) for name, group in row["groups"].items()}
        row["intervals"] = {name: tuple(pair) for name, pair in row["intervals"].items()}
        row["notes"] = tuple(row["notes"])
        results.append(Result(**row))
    return results


def _tree(place: Path) -> dict[str, Any]:
    try:
        tree = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{place} can't be read as results: {error}.") from None
    if not isinstance(tree, dict) or tree.get("format_version") != FORMAT:
        raise InputError(f"{place} is no results file of format version {FORMAT}.")
    return tree
