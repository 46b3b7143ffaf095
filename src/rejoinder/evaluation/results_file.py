"""Reads and writes results files, and the predictions beside them."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import first_repeated
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.results import Key, Result
from rejoinder.evaluation.results_format import FORMAT, as_tree, result_of, results_of
from rejoinder.io.files.atomic import write_bytes, write_text
from rejoinder.io.files.claims import claim
from rejoinder.io.files.hashed import check_seal, sealed, sha256_of
from rejoinder.io.files.outputs import refuse_inputs
from rejoinder.measures import LARGEST, ScoringError

_COLUMNS = {"id": pl.String, "prediction": pl.Float64, "gold": pl.Float64}
_EXACT = 1e-9
"""Largest relative difference of a score that is computed again."""
_HASH_DIGITS = 12
"""Digits of the SHA-256 in a file name: files of other predictions have other names."""


@dataclass
class ResultsFile:
    """A results file that this process has claimed. Results that are added are written at once."""

    path: Path
    results: list[Result]

    def keep(self, encoder: Mapping[str, Any], *, overwrite: bool) -> None:
        """Keeps the results of an encoder only, which describes itself as `encoder`.

        Raises:
            InputError: the file holds results of another encoder, and `overwrite` is False.
        """
        others = [result for result in self.results if dict(result.encoder) != dict(encoder)]
        if others and not overwrite:
            raise InputError(
                f"{self.path} holds results of {others[0].encoder.get('name')}, another encoder "
                f"than {encoder.get('name')} or another version of it; name another file, or "
                "replace them with --overwrite."
            )
        self.results = [result for result in self.results if dict(result.encoder) == dict(encoder)]

    def add(self, result: Result) -> Result:
        """Adds a result, or replaces that with the same key, and writes the file.

        Returns the result with the name of its predictions file.
        """
        replaced = [old for old in self.results if old.key == result.key]
        kept = [old for old in self.results if old.key != result.key]
        folder = items_folder(self.path)
        before = set(folder.glob("*"))
        try:
            self.results = write_results(self.path, [*kept, result])
        except BaseException:
            for new in set(folder.glob("*.parquet")) - before:  # no result names it
                new.unlink(missing_ok=True)
            raise
        named = {each.predictions.get("file") for each in self.results}
        for old in replaced:
            file = old.predictions.get("file")
            path = self.path.parent / (file or "")
            if file not in named and path.parent == folder:
                path.unlink(missing_ok=True)
        return self.results[-1]


@contextmanager
def open_results(
    path: Path, *, overwrite: bool = False, inputs: Iterable[object] = ()
) -> Iterator[ResultsFile]:
    """Claims a results file, from reading it to writing the last result.

    The file need not exist. `overwrite` treats a file that can't be read as an empty one, unless
    it is or lies in one of the `inputs`.

    Raises:
        InputError: it is no file; or it is no results file, and `overwrite` is False or it is read.
        BusyError: another process has claimed it.
        StorageError: it can't be written.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no plain file; results are written to one. Name another.")
    with claim(path), claim(items_folder(path) / "items"):
        results = []
        try:
            results = read_results(path) if path.exists() else []
        except InputError as error:
            if not overwrite:
                raise InputError(f"{error} Or replace it with --overwrite.") from None
            refuse_inputs(path, inputs)
        yield ResultsFile(path, results)


def write_results(path: Path, results: Sequence[Result]) -> list[Result]:
    """Writes a results file, and a Parquet file of predictions for each result with items.

    The predictions go to `<name>.predictions/` beside the file. They are written first. Returns the
    results of the encoder as written, with the names of their predictions files.
    """
    written = [_write_items(path, result) for result in results]
    rows = [sealed(as_tree(result)) for result in written]
    tree = {"format_version": FORMAT, "results": rows}
    write_text(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")
    return written


def read_results(path: Path) -> list[Result]:
    """Reads a results file. Checks its keys and hashes, and that scores follow from predictions.

    Raises:
        InputError: the file is no results file, has another format version, or was damaged or
            changed.
    """
    results: list[Result] = []
    keys: set[Key] = set()
    for number, row in enumerate(results_of(_json_of(path), str(path))):
        where = f"{path}: results[{number}]"
        result = result_of(row, where)
        if result.predictions:
            items = Items.from_frame(read_items(path, result))
            _check_scores(result, items, where)
        check_seal(row, Path(where), InputError, "Evaluate again.")
        if result.key in keys:
            raise InputError(f"{where} repeats another result of {result.task} on {result.split}.")
        if results and result.encoder != results[0].encoder:
            raise InputError(f"{where} is of another encoder than the others; a file has one.")
        keys.add(result.key)
        results.append(result)
    return results


def _check_scores(result: Result, items: Items, where: str) -> None:
    """Refuses a result whose scores differ from those that follow from its items."""
    try:
        recomputed = result.metric.recompute(items)
    except ScoringError as error:
        raise InputError(f"{where}: the saved predictions give no {result.main}: {error}") from None
    for name, value in recomputed.items():
        allowed = _EXACT * max(1.0, abs(value)) + result.metric.rounding.get(name, 0.0)
        score = result.scores.get(name, value)
        if abs(score - value) > allowed:
            raise InputError(
                f"{where}: {name} is {score}, and the saved predictions give {value:.6g}; "
                "the file was changed after it was written. Evaluate again."
            )


def read_items(path: Path, result: Result) -> pl.DataFrame:
    """Reads the items of a result of the file `path`: id, prediction, gold, and perhaps fold.

    Raises:
        InputError: the result has no predictions file, or the file is missing, changed or damaged.
    """
    what = f"{result.task} on {result.split}"
    if not result.predictions:
        raise InputError(f"{path}: {what} has no predictions file.")
    file = path.parent / result.predictions["file"]
    try:
        content = file.read_bytes()
    except (OSError, ValueError) as error:  # a name can hold a NUL or half a surrogate pair
        raise InputError(
            f"{path}: the predictions of {what} can't be read: {error}; evaluate again."
        ) from None
    if sha256_of(content) != result.predictions["sha256"]:
        raise InputError(f"{file} is not the file that {path} was written with; evaluate again.")
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{file} is damaged: {error}; evaluate again.") from None
    _check_items(frame, file, result)
    return frame


def _check_items(frame: pl.DataFrame, file: Path, result: Result) -> None:
    types = {name: frame.schema.get(name) for name in _COLUMNS}
    if types != _COLUMNS or frame.null_count().sum_horizontal().sum():
        raise InputError(f"{file}: columns id, prediction and gold, without gaps, are needed.")
    if frame.schema.get("fold", pl.Int64) != pl.Int64:
        raise InputError(f"{file}: the column fold is of {frame.schema['fold']}, not of Int64.")
    if frame.is_empty():
        raise InputError(f"{file} has no items; evaluate again.")
    for name in ("prediction", "gold"):
        # Polars orders NaN above every number, so this refuses it too
        if not (frame[name].abs() <= LARGEST).all():
            raise InputError(
                f"{file}: a {name} is not finite, or beyond {LARGEST:.0e}; evaluate again."
            )
    if len(frame) != result.n:
        raise InputError(
            f"{file} has {len(frame)} items, and {result.task} on {result.split} was scored on "
            f"{result.n}; evaluate again."
        )
    repeated = first_repeated(frame["id"].to_list())
    if repeated is not None:
        raise InputError(f"{file}: the id {repeated!r} is there more than once.")


def _write_items(path: Path, result: Result) -> Result:
    if result.items is None or result.predictions:
        return result
    columns = {
        "id": pl.Series(result.items.ids, dtype=pl.String),
        "prediction": pl.Series(result.items.predictions, dtype=pl.Float64),
        "gold": pl.Series(result.items.gold, dtype=pl.Float64),
    }
    if result.items.folds is not None:
        columns["fold"] = pl.Series(result.items.folds, dtype=pl.Int64)
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    content = buffer.getvalue()
    digest = sha256_of(content)
    folder = items_folder(path)
    task = result.task.replace("/", "-")
    name = f"{task}.{result.split}.{digest[:_HASH_DIGITS]}.parquet"
    write_bytes(folder / name, content)
    return replace(result, predictions={"file": f"{folder.name}/{name}", "sha256": digest})


def items_folder(path: Path) -> Path:
    """Returns the folder of the predictions of a results file."""
    return path.with_name(f"{path.stem}.predictions")


def _json_of(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read as results: {error}.") from None
