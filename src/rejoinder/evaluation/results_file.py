"""`results.json` on disk, and the predictions beside it: written, read, checked, extended."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import first_repeated
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.recomputed import check_scores
from rejoinder.evaluation.results import Key, Result
from rejoinder.evaluation.results_format import FORMAT, as_tree, result_of, results_of
from rejoinder.files.atomic import write_bytes, write_text
from rejoinder.files.claims import claim
from rejoinder.files.hashed import check_seal, sealed, sha256_of
from rejoinder.measures.correlation import LARGEST

_COLUMNS = {"id": pl.String, "prediction": pl.Float64, "gold": pl.Float64}
_HASH_DIGITS = 12
"""Of the SHA-256 in a name: files of other predictions have other names."""


class ResultsFile:
    """A results file that this process holds: its results, and further ones, written at once."""

    def __init__(self, path: Path, results: Sequence[Result]) -> None:
        self.path = path
        self.results = list(results)

    def keep(self, encoder: Mapping[str, Any], *, overwrite: bool) -> None:
        """Keep to the results of one encoder.

        Raises:
            InputError: the file holds those of another one, and `overwrite` is false.
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
        """Write the file with one more result, in place of one with the same key.

        Returns:
            The result with the name of its file of predictions.
        """
        replaced = [one for one in self.results if one.key == result.key]
        kept = [one for one in self.results if one.key != result.key]
        self.results = write_results(self.path, [*kept, result])
        named = {one.predictions.get("file") for one in self.results}
        for one in replaced:
            place = self.path.parent / one.predictions.get("file", "")
            if one.predictions.get("file") not in named and place.parent == _items_folder(
                self.path
            ):
                place.unlink(missing_ok=True)
        return self.results[-1]


@contextmanager
def open_results(path: Path, *, overwrite: bool = False) -> Iterator[ResultsFile]:
    """Hold a results file against other processes, from reading it to the last result.

    Args:
        path: the file; it need not exist.
        overwrite: take a file that can't be read for an empty one.

    Raises:
        InputError: it is no file, or no results file and `overwrite` is false.
        BusyError: another process holds it.
        StorageError: it can't be written.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no plain file; results are written to one. Name another.")
    with claim(path), claim(_items_folder(path) / "items"):
        yield ResultsFile(path, _read_or_none(path, overwrite=overwrite))


def _read_or_none(path: Path, *, overwrite: bool) -> list[Result]:
    if not path.exists():
        return []
    try:
        return read_results(path)
    except InputError as error:
        if overwrite:
            return []
        raise InputError(f"{error} Or replace it with --overwrite.") from None


def write_results(path: Path, results: Sequence[Result]) -> list[Result]:
    """Write `results.json` and a Parquet file of items for every result that has some.

    Items go to `<name>.predictions/` beside it, before the results that name them.

    Args:
        path: the results file.
        results: those of one encoder.

    Returns:
        The results as written, with the names of their files.
    """
    written = [_write_items(path, result) for result in results]
    rows = [sealed(as_tree(result)) for result in written]
    tree = {"format_version": FORMAT, "results": rows}
    write_text(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")
    return written


def read_results(path: Path) -> list[Result]:
    """What `write_results` wrote, once it is checked.

    Its form, its hashes, and that its scores follow from the predictions beside it.

    Raises:
        InputError: the file is no such file, of another format version, damaged or changed.
    """
    results: list[Result] = []
    keys: set[Key] = set()
    for number, row in enumerate(results_of(_json_of(path), str(path))):
        where = f"{path}: results[{number}]"
        result = result_of(row, where)
        if result.predictions:
            items = Items.from_frame(read_items(path, result))
            check_scores(result.scores, result.main, items, where)
        check_seal(row, Path(where), InputError, "Evaluate again.")
        if result.key in keys:
            raise InputError(f"{where} repeats another result of {result.task} on {result.split}.")
        if results and result.encoder != results[0].encoder:
            raise InputError(f"{where} is of another encoder than the others; a file has one.")
        keys.add(result.key)
        results.append(result)
    return results


def read_items(path: Path, result: Result) -> pl.DataFrame:
    """The items of a result: columns id, prediction, gold, and where it was folded, fold.

    Args:
        path: the results file that the result was read from.
        result: one of its results.

    Raises:
        InputError: it has none, or the file is not there, not the one that was written, or holds
            an id twice.
    """
    what = f"{result.task} on {result.split}"
    if not result.predictions:
        raise InputError(f"{path}: {what} has no predictions file.")
    place = path.parent / result.predictions["file"]
    try:
        content = place.read_bytes()
    except (OSError, ValueError) as error:  # also a NUL or half a surrogate pair in the name
        raise InputError(
            f"{path}: the predictions of {what} can't be read: {error}; evaluate again."
        ) from None
    if sha256_of(content) != result.predictions["sha256"]:
        raise InputError(f"{place} is not the file that {path} was written with; evaluate again.")
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{place} is damaged: {error}; evaluate again.") from None
    _check_items(frame, place, result)
    return frame


def _check_items(frame: pl.DataFrame, place: Path, result: Result) -> None:
    kinds = {name: frame.schema.get(name) for name in _COLUMNS}
    if kinds != _COLUMNS or frame.null_count().sum_horizontal().sum():
        raise InputError(f"{place}: columns id, prediction and gold, without gaps, are needed.")
    if frame.schema.get("fold", pl.Int64) != pl.Int64:
        raise InputError(f"{place}: the column fold is of {frame.schema['fold']}, not of Int64.")
    if frame.is_empty():
        raise InputError(f"{place} has no items; evaluate again.")
    for name in ("prediction", "gold"):
        # a NaN is above every number
        if not (frame[name].abs() <= LARGEST).all():
            raise InputError(
                f"{place}: a {name} is not finite, or beyond {LARGEST:.0e}; evaluate again."
            )
    if len(frame) != result.n:
        raise InputError(
            f"{place} has {len(frame)} items, and {result.task} on {result.split} was scored on "
            f"{result.n}; evaluate again."
        )
    repeated = first_repeated(frame["id"].to_list())
    if repeated is not None:
        raise InputError(f"{place}: the id {repeated!r} is there more than once.")


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
    folder = _items_folder(path)
    task = result.task.replace("/", "-")
    name = f"{task}.{result.split}.{digest[:_HASH_DIGITS]}.parquet"
    write_bytes(folder / name, content)
    return replace(result, predictions={"file": f"{folder.name}/{name}", "sha256": digest})


def _items_folder(path: Path) -> Path:
    return path.with_name(f"{path.stem}.predictions")


def _json_of(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read as results: {error}.") from None
