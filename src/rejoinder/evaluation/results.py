"""Results of evaluation tasks: scores with everything they depend on, labels, files."""

import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import speed
from rejoinder.evaluation.intervals import Interval, mean_interval
from rejoinder.evaluation.metrics import Items, Metric, metric_of
from rejoinder.io.files.atomic import write_bytes, write_text
from rejoinder.io.files.claims import claim, refuse_inputs
from rejoinder.io.files.hashed import check_seal, decoded, sealed, sha256_of
from rejoinder.io.formats.shown import Shown, View
from rejoinder.measures import LARGEST, ScoringError

if TYPE_CHECKING:
    import polars as pl

Key = tuple[str, str, str, str]
"""Task, split, SHA-256 of the data, settings as JSON. With the encoder, they fix a result."""


@dataclass(frozen=True)
class Group:
    """The scores on a part of the data, such as a genre or a source."""

    n: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Scored:
    """What a task computes on one split. `score_tasks` makes a `Result` of it."""

    main: str
    """Name of the main score."""
    scores: Mapping[str, float]
    items: Items
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % intervals by name of score."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Scores by genre or source."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The name of the data and other facts; the SHA-256 is added."""
    notes: Sequence[str] = ()


def recomputed(metric: Metric, items: Items, interval: Interval, **facts: Any) -> Scored:
    """Returns the scores computed from items, the interval of the main score, and other facts."""
    return Scored(metric.name, metric.recompute(items), items, {metric.name: interval}, **facts)


def classified(items: Items, seed: int, **facts: Any) -> Scored:
    """Returns the percentage of items with the right class, its interval, and other facts."""
    right = (items.predictions == items.gold).astype(np.float64)
    scores, interval = {"accuracy": 100 * float(right.mean())}, mean_interval(right, seed, unit=100)
    return Scored("accuracy", scores, items, {"accuracy": interval}, **facts)


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """The scores of one task on one split, with everything that they depend on."""

    task: str
    split: str
    n: int
    main: str
    """Name of the main score."""
    scores: Mapping[str, float]
    intervals: Mapping[str, Interval]
    """95 % intervals by name of score."""
    groups: Mapping[str, Group]
    """Scores by genre or source."""
    seed: int
    data: Mapping[str, Any]
    """The scored data: its name, form and SHA-256."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cost: Mapping[str, float] = field(default_factory=dict)
    """Cost of encoding: `sentences`, `seconds`, `processor_seconds`, `joules`, `peak_bytes`,
    `dimensions`, `model_bytes`, and sentences a second on reference sentences in the same run, for
    the encoder (`reference`) and others, by name. Tasks that share their sentences share the cost.
    Unknown costs are absent."""
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
    """The settings that affect the task. With other settings it is another result."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of `evaluate`, so that it can be repeated. Empty if that is not possible."""
    items: Items | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """Identifies the result among all results of its encoder."""
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
        cells = []
        for name, value in self.scores.items():
            numbers = (f"{number:.4f}" for number in (value, *self.intervals.get(name, ())))
            cells.append((name, *numbers, "", "")[:4])
        title = f"{self.task} on {self.split}, {self.n:,} items"
        return View(title, ("score", "value", "95 % from", "to"), cells)

    def __post_init__(self) -> None:
        where = f"{self.task} on {self.split}"
        metric_of(self.main)  # raises an error now, not when the results file is read
        for name, value in self.scores.items():
            if not math.isfinite(value):
                raise InputError(f"{where}: {name} is {value}.")
        for name, count in Counter(() if self.items is None else self.items.ids).most_common(1):
            if count > 1:
                raise InputError(f"{where}: the id {name!r} is in the data more than once.")
        if self.main not in self.scores:
            raise InputError(f"{where}: the main score {self.main} is not among the scores.")

    def as_tree(self) -> dict[str, Any]:
        """Returns the result in its JSON form, without its items."""
        tree = asdict(replace(self, items=None))
        del tree["items"]
        return tree

    @cached_property
    def sealed_tree(self) -> dict[str, Any]:
        """`as_tree` with its hash: computed once, and written again after each later task."""
        return sealed(self.as_tree())


@dataclass(frozen=True)
class Missing:
    """A task that could not be scored because its data is missing."""

    task: str
    reason: str


def cost_text(result: Result) -> str:
    """Returns the cost of encoding for people, an empty string if nothing was encoded."""
    cost, rate = result.cost, speed([result.cost])
    if rate is None:
        return ""
    spent = 1e3 * cost["processor_seconds"] / cost["sentences"]
    parts = [f"{rate:,.0f} sentences a second", f"{spent:.3g} ms of processor time each"]
    if "joules" in cost:
        parts.append(f"{cost['joules'] / cost['sentences']:.3g} joules each")
    if "dimensions" in cost:
        parts.append(f"{cost['dimensions']:,.0f} dimensions")
    if "model_bytes" in cost:
        parts.append(f"{cost['model_bytes'] / 1e6:,.0f} MB on disk")
    if "peak_bytes" in cost:
        parts.append(f"at most {cost['peak_bytes'] / 1e6:,.0f} MB of memory")
    return "encoding: " + ", ".join(parts)


def settings_key(settings: Mapping[str, Any]) -> str:
    """Returns settings as one string; equal settings give equal strings."""
    return json.dumps(settings, sort_keys=True)


def variants(results: Iterable[Result]) -> dict[Key, str]:
    """Returns a label for each key of `results`, empty if its task and split are unique.

    The label names the settings that differ, such as `kfold 3, mode compat`, and the data if it
    differs.
    """
    groups: dict[tuple[str, str], dict[Key, dict[str, Any]]] = {}
    for result in results:
        members = groups.setdefault((result.task, result.split), {})
        members[result.key] = _flat(result.settings) | {"data": result.key[2][:8]}
    labels: dict[Key, str] = {}
    for members in groups.values():
        names = list(dict.fromkeys(name for about in members.values() for name in about))
        names.sort(key="data".__eq__)
        values = {name: {str(about.get(name)) for about in members.values()} for name in names}
        differing = [name for name in names if len(values[name]) > 1]
        for key, about in members.items():
            labels[key] = ", ".join(f"{name} {about.get(name, '–')}" for name in differing)
    return labels


def with_label(task: str, split: str, label: str) -> str:
    """Returns a task, its split, and the label of its settings.

    >>> with_label("mr/senteval", "all", "kfold 3")
    'mr/senteval all (kfold 3)'
    """
    return f"{task} {split} ({label})" if label else f"{task} {split}"


def differences(first: Result, second: Result) -> str:
    """Returns the settings and data that differ between two results, or an empty string."""
    a, b = (
        _flat(result.settings) | {"form": result.data.get("form", "–"), "data": result.key[2][:8]}
        for result in (first, second)
    )
    names = [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]
    return ", ".join(f"{name} {a.get(name, '–')} against {b.get(name, '–')}" for name in names)


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings without nesting, and without those implied by others."""
    outer = {name: value for name, value in settings.items() if name != "classifiers"}
    inner = settings.get("classifiers", {})
    named = {f"classifier {n}" if n in outer else n: value for n, value in dict(inner).items()}
    return {**{n: v for n, v in named.items() if n not in ("penalties", "fold_seed")}, **outer}


def score_text(value: float, *, percent: bool, sign: bool = False) -> str:
    """Returns a score for people: percentages have two digits, others four.

    >>> score_text(71.25, percent=True), score_text(0.5, percent=False, sign=True)
    ('71.25', '+0.5000')
    """
    return f"{value:{'+' if sign else ''}.{2 if percent else 4}f}"


FORMAT = 4
_READ = (3, FORMAT)
_SHARED = ("encoder", "versions", "machine", "run")
"""Parts that a results file states only once if they are the same in all its results."""
_EXACT = 1e-9
"""Largest relative difference of a recomputed score."""
_HASH_DIGITS = 12
"""Digits of the SHA-256 in a file name, so that other predictions get other names."""


@dataclass(frozen=True)
class _File:
    format_version: int
    results: list[dict[str, Any]]
    shared: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Values of `_SHARED` that all results have. Format 3 does not have it."""


@dataclass
class ResultsFile:
    """A results file locked by this process. Results are written as they are added."""

    path: Path
    results: list[Result]

    def keep(self, encoder: Mapping[str, Any], *, overwrite: bool) -> None:
        """Keeps only the results of one encoder, which describes itself as `encoder`.

        Raises:
            InputError: the file holds results of another encoder, and `overwrite` is False.
        """
        others = [result for result in self.results if dict(result.encoder) != dict(encoder)]
        if others and not overwrite:
            found, name = others[0].encoder.get("name"), encoder.get("name")
            raise InputError(
                f"{self.path} holds results of {found}, another encoder than {name} or another "
                "version; name another file, or replace them with `overwrite=True`."
            )
        self.results = [result for result in self.results if dict(result.encoder) == dict(encoder)]

    def add(self, result: Result) -> Result:
        """Adds a result, or replaces the result with the same key, and writes the file.

        Returns the result with the name of its predictions file.
        """
        before = self.results
        result = _with_items(self.path, result)
        try:
            changed = [*(old for old in before if old.key != result.key), result]
            _write(self.path, changed)
            self.results = changed
        finally:
            named = {kept.predictions.get("file") for kept in self.results}
            for file in {one.predictions.get("file", "") for one in (*before, result)} - named:
                path = self.path.parent / file
                if path.parent == items_folder(self.path):
                    path.unlink(missing_ok=True)
        return result


@contextmanager
def open_results(
    path: Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Iterator[ResultsFile]:
    """Locks a results file, from reading it to writing the last result.

    The file need not exist. `overwrite` treats an unreadable file as an empty one, unless
    it is, or lies in, one of the `inputs`.

    Raises:
        InputError: it is not a file; it is not a results file, and `overwrite` is False or it is
            an input; or the folder of its predictions is one of the `inputs`, or contains one.
        BusyError: another process has locked it.
        StorageError: it can't be written.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file; results are written to one. Name another.")
    inputs = list(inputs)
    folder = items_folder(path)
    refuse_inputs(folder, [given for given in inputs if _is_inside(given, folder)])
    with claim(path), claim(folder / "items"):
        try:
            results = read_results(path) if path.exists() else []
        except InputError as error:
            if not overwrite:
                raise InputError(f"{error} Or replace it with `overwrite=True`.") from None
            refuse_inputs(path, inputs)
            results = []
        yield ResultsFile(path, results)


def _is_inside(given: object, folder: Path) -> bool:
    try:
        real = Path(str(given)).resolve()
    except (OSError, ValueError):  # not a path, such as the address of a model
        return False
    return folder.resolve() in (real, *real.parents)


def write_results(path: Path, results: Iterable[Result]) -> list[Result]:
    """Writes a results file, and a Parquet file of predictions for each result with items.

    The predictions are written first, to `<name>.predictions/` next to the file. Returns
    the results as written, with the names of their predictions files.
    """
    written = [_with_items(path, result) for result in results]
    _write(path, written)
    return written


def _write(path: Path, results: Sequence[Result]) -> None:
    trees = [result.sealed_tree for result in results]
    shared = {part: _same([tree[part] for tree in trees]) for part in _SHARED}
    lines = []
    for tree in trees:
        own = {
            part: {name: value for name, value in tree[part].items() if name not in same}
            for part, same in shared.items()
        }
        row = {name: value for name, value in (tree | own).items() if name not in own or value}
        lines.append(json.dumps(row, allow_nan=False))
    head = f'{{\n "format_version": {FORMAT},\n "shared": {json.dumps(shared)},\n "results": [\n  '
    write_text(path, head + ",\n  ".join(lines) + "\n ]\n}\n")


def _same(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the parts that are identical in all of some JSON objects."""
    texts = [{name: settings_key(value) for name, value in part.items()} for part in parts]
    return {
        name: value
        for part in parts[:1]
        for name, value in part.items()
        if all(text.get(name) == texts[0][name] for text in texts)
    }


def read_results(path: Path) -> list[Result]:
    """Reads a results file. Checks keys and hashes, and recomputes scores from the predictions.

    Raises:
        InputError: the file is not a results file, has another format version, or was damaged or
            changed.
    """
    results: dict[Any, Result] = {}
    for number, row in enumerate(_rows_of(path)):
        where = f"{path}: results[{number}]"
        values = check_seal(row, Path(where), InputError, "Evaluate again.")
        try:
            result = decoded(Result, values)
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise InputError(f"{where} is damaged: {reason}. Evaluate again.") from None
        if result.predictions:
            items = _read_items(path, result)
            _check_scores(result, items, where)
            result = replace(result, items=items)
        if result.key in results:
            raise InputError(f"{where} repeats another result of {result.task} on {result.split}.")
        if any(result.encoder != other.encoder for other in results.values()):
            raise InputError(f"{where} is from another encoder; a results file has only one.")
        results[result.key] = result
    return list(results.values())


def _rows_of(path: Path) -> list[dict[str, Any]]:
    """Returns the results as JSON, each with all its parts."""
    try:
        tree = json.loads(path.read_text("utf-8"))
        json.dumps(tree, allow_nan=False)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read as results: {error}.") from None
    if not isinstance(tree, Mapping) or "format_version" not in tree:
        raise InputError(f"{path} is not a results file of `rejoinder evaluate`.")
    if tree["format_version"] not in _READ:
        found, read = short(tree["format_version"]), " and ".join(map(str, _READ))
        raise InputError(f"{path} is of format version {found}; this version reads {read}.")
    try:
        file = decoded(_File, tree)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}. Evaluate again.") from None
    for row, (part, same) in product(file.results, file.shared.items()):
        own = row.get(part, {})
        row[part] = same | own if isinstance(own, dict) else own
    return file.results


def _check_scores(result: Result, items: Items, where: str) -> None:
    """Refuses a result whose scores differ from those computed from its items."""
    try:
        recomputed = result.metric.recompute(items)
    except ScoringError as error:
        raise InputError(f"{where}: {result.main} can't be computed again: {error}") from None
    for name, value in recomputed.items():
        allowed = _EXACT * max(1.0, abs(value)) + result.metric.rounding.get(name, 0.0)
        score = result.scores.get(name, value)
        if abs(score - value) > allowed:
            other = f"the saved predictions give {value:.6g}"
            raise InputError(f"{where}: {name} is {score}, and {other}. Evaluate again.")


def _read_items(path: Path, result: Result) -> Items:
    """Returns the items of a result of the file `path`. Their texts are not kept, and are empty.

    Raises:
        InputError: their file is missing, changed or damaged.
    """
    import polars as pl

    file = path.parent / result.predictions.get("file", "")
    try:
        content = file.read_bytes()
    except (OSError, ValueError) as error:  # a name can contain a NUL or half a surrogate pair
        what = f"the predictions of {result.task} on {result.split}"
        raise InputError(f"{path}: {what} can't be read: {error}; evaluate again.") from None
    if sha256_of(content) != result.predictions.get("sha256"):
        raise InputError(f"{file} is not the file that {path} was written with; evaluate again.")
    try:
        frame = pl.read_parquet(io.BytesIO(content))
        _check_items(frame, result.n)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise InputError(f"{file} is damaged: {error}; evaluate again.") from None
    return Items(
        frame["id"].to_list(),
        frame["prediction"].to_numpy(),
        frame["gold"].to_numpy(),
        [""] * len(frame),
        frame["fold"].to_numpy() if "fold" in frame.columns else None,
    )


def _check_items(frame: "pl.DataFrame", count: int) -> None:
    """Raises a ValueError if these are not the `count` items that a result was scored on."""
    import polars as pl

    needed = {"id": pl.String, "prediction": pl.Float64, "gold": pl.Float64}
    types = {name: frame.schema.get(name) for name in needed}
    if types != needed or frame.schema.get("fold", pl.Int64) != pl.Int64:
        raise ValueError(f"its columns are {dict(frame.schema)}, and {needed} are needed")
    if frame.null_count().sum_horizontal().sum():
        raise ValueError("a value is missing")
    if len(frame) != count or not count:
        raise ValueError(f"it has {len(frame)} items, and the result was scored on {count}")
    for name in ("prediction", "gold"):
        # Polars orders NaN above every number, so this refuses it too
        if not (frame[name].abs() <= LARGEST).all():
            raise ValueError(f"a {name} is not finite, or beyond {LARGEST:.0e}")


def _with_items(path: Path, result: Result) -> Result:
    """Writes the items of a result if they are not there, and returns it with their file."""
    if result.items is None or result.predictions:
        return result
    import polars as pl

    columns = {
        "id": pl.Series(result.items.ids, dtype=pl.String),
        "prediction": pl.Series(result.items.predictions, dtype=pl.Float64),
        "gold": pl.Series(result.items.gold, dtype=pl.Float64),
    }
    if result.items.folds is not None:
        columns["fold"] = pl.Series(result.items.folds, dtype=pl.Int64)
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    digest = sha256_of(buffer.getvalue())
    task = result.task.replace("/", "-")
    name = f"{task}.{result.split}.{digest[:_HASH_DIGITS]}.parquet"
    folder = items_folder(path)
    write_bytes(folder / name, buffer.getvalue())
    return replace(result, predictions={"file": f"{folder.name}/{name}", "sha256": digest})


def items_folder(path: Path) -> Path:
    """Returns the predictions folder of a results file."""
    return path.with_name(f"{path.stem}.predictions")
