"""The board: a page of encoders by quality and cost, which shows whose scores are tied.

Every two encoders are compared on each column that both have, on the same items, with the test of
its metric. The page chooses columns, corrects for all pairs (Holm), and ranks by intervals.
"""

import json
import math
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import InputError, require
from rejoinder.evaluation.encoding import speed
from rejoinder.evaluation.report import LEVEL, compare_task, names, published_tables, render_page
from rejoinder.evaluation.results import Key, Result, items_folder, read_results, variants
from rejoinder.evaluation.run import leak_note
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output

_STANDARD_ERRORS = 2 * 1.959964
"""Standard errors between the ends of a 95 % interval."""
Columns = Mapping[Key, int]
"""The index of each column."""
Progress = Callable[[int, int], None]
"""Called with the number of finished comparisons, and of all."""


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts about an encoder that its results file does not have."""

    title: str = ""
    """The name shown on the board."""
    licence: str = ""
    """Licence of the model."""
    data: str = ""
    """Its training data, with licences."""
    supervised: tuple[str, ...] = ()
    """Prefixes of the ids of tasks whose training split it was trained on, such as `stsb/`."""


def write_board(
    paths: Sequence[Path],
    out: Path,
    about: Path | None = None,
    *,
    overwrite: bool = False,
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> Path:
    """Writes `index.html`, a self-contained page that needs no server, to the folder `out`.

    Metrics where less is better are left out.

    Args:
        paths: results files, one per encoder. Their hashes are checked, and their scores
            are recomputed from the predictions.
        out: the folder.
        about: a TOML file with a table for each encoder, by its name in its results: `title`,
            `licence`, `data`, `supervised`.
        overwrite: replace a folder that is not empty.
        seed: seeds the bootstrap.
        progress: called with the progress.

    Returns:
        The path of the page.

    Raises:
        InputError: a file was changed, fewer than two encoders have results, or `out`
            is occupied.
        MissingExtraError: Jinja2 is not installed.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    require("report", "jinja2")
    with claim_output(out, overwrite=overwrite, inputs=[*paths, *map(items_folder, paths)]):
        runs = [read_results(path) for path in paths]
        content = board(runs, _read_about(about), seed=seed, progress=progress)
        # inside a script, `</` would end it
        data = json.dumps(content, allow_nan=False).replace("</", "<\\/")
        script = files("rejoinder").joinpath("data/templates/board.js").read_text("utf-8")
        page = render_page("board.html.j2", (), (), data=data, script=script)
        with new_folder(out, overwrite=overwrite) as folder:
            (folder / "index.html").write_text(page, "utf-8")
    return out / "index.html"


def board(
    runs: Sequence[Sequence[Result]],
    about: Mapping[str, About],
    *,
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> dict[str, Any]:
    """Returns the contents of the page as plain JSON.

    A pair contains the indices of a column and of two encoders, the difference in points of 100,
    its standard error, and p before correction.

    Raises:
        InputError: fewer than two encoders have results, or results can't be compared.
    """
    runs = [[result for result in run if result.metric.higher_is_better] for run in runs]
    runs = [run for run in runs if run]
    if len(runs) < 2:
        raise InputError("a board needs results of at least two encoders.")
    labels = variants(result for run in runs for result in run)
    columns = {key: index for index, key in enumerate(labels)}
    wanted = [
        (columns[one.key], left, right, one, other)
        for left, right in combinations(range(len(runs)), 2)
        for one in runs[left]
        for other in runs[right]
        if one.key == other.key and one.main == other.main
    ]
    draws = math.ceil(4 * math.comb(len(runs), 2) / LEVEL)  # a corrected p can be below the level
    pairs = []
    for done, (column, left, right, one, other) in enumerate(wanted):
        progress(done, len(wanted))
        found = compare_task(one, other, "", seed, draws)
        unit = 1 if found.in_percent else 100
        low, high = found.interval
        error = unit * (high - low) / _STANDARD_ERRORS
        numbers = (unit * found.difference, error, found.p)
        pairs.append((column, left, right, *(float(f"{number:.6g}") for number in numbers)))
    progress(len(wanted), len(wanted))
    first = {result.key: result for run in reversed(runs) for result in run}
    return {
        "level": LEVEL,
        "columns": [_column(first[key], label) for key, label in labels.items()],
        "encoders": [
            _encoder(name, run, columns, about.get(str(run[0].encoder.get("name")), About()))
            for name, run in zip(names(runs), runs, strict=True)
        ]
        + _published(first, columns),
        "pairs": pairs,
    }


def _column(result: Result, label: str) -> dict[str, Any]:
    """Returns the description of a column; columns of the same items have the same `data`."""
    first = "" if result.items is None else result.items.ids[0]
    return {
        "task": result.task,
        "split": result.split,
        "label": label,
        "main": result.main,
        "n": result.n,
        "data": f"{result.data.get('sha256')} {first}",
    }


def _encoder(name: str, run: Sequence[Result], columns: Columns, about: About) -> dict[str, Any]:
    """Returns the row of an encoder, with scores by column index."""
    costs = [result.cost for result in run]
    whole = {key: value for cost in costs for key, value in cost.items()}
    sentences = sum(cost.get("sentences", 0) for cost in costs)
    own, reference = whole.get("reference"), whole.get("rejoinder-small")
    spent = sum(cost.get("processor_seconds", 0) for cost in costs)
    return {
        "name": about.title or name,
        "licence": about.licence,
        "data": about.data,
        "version": run[-1].versions.get("rejoinder", ""),
        "date": max(result.date for result in run)[:10],
        "cost": {
            "rate": own or speed(costs),
            "ratio": own / reference if own and reference else None,
            "milliseconds": 1e3 * spent / sentences if sentences else None,
            "megabytes": whole["model_bytes"] / 1e6 if "model_bytes" in whole else None,
            "dimensions": whole.get("dimensions") or run[0].encoder.get("dim"),
            "memory": max((cost.get("peak_bytes", 0) for cost in costs), default=0) / 1e6 or None,
        },
        "scores": {columns[result.key]: _score(result, about) for result in run},
    }


def _score(result: Result, about: About) -> dict[str, Any]:
    unit = 1 if result.in_percent else 100
    low, high = result.intervals.get(result.main, (None, None))
    return {
        "value": unit * result.scores[result.main],
        "interval": None if low is None or high is None else [unit * low, unit * high],
        "supervised": result.task.startswith(about.supervised) if about.supervised else False,
        "leaks": leak_note(result.task, result.split, result.encoder),
        "notes": result.notes,
        "seed": result.seed,
        "date": result.date,
        "data": str(result.data.get("sha256", ""))[:12],
        "machine": ", ".join(str(value) for value in result.machine.values()),
        "versions": ", ".join(f"{name} {value}" for name, value in result.versions.items()),
        "command": _command(result),
    }


def _command(result: Result) -> str:
    """Returns the command that reproduces a result."""
    run = dict(result.run)
    if not run:
        return ""
    settings = {**run.pop("classifiers", {}), **run}
    usual = {"split": "test", "text": "both", "seed": 0, "mode": "fast", "nhid": 0, "kfold": 10}
    names = ("tasks", "data", "pairs", "form", "adaptation", *usual)
    words = ["rejoinder", "evaluate", str(run["encoder"])]
    for name in names:
        if settings.get(name) not in (None, usual.get(name)):
            words += [f"--{name}", str(settings[name])]
    flags = {"pytorch": settings.get("usepytorch")}
    words += [f"--{name}" for name, is_set in flags.items() if is_set]
    return shlex.join(words)


def _published(first: Mapping[Key, Result], columns: Columns) -> list[dict[str, Any]]:
    """Returns a row for each published encoder with a column's score; it is not tested."""
    rows: dict[str, dict[str, Any]] = {}
    for table in published_tables():
        for name, values in table["rows"].items():
            for task, value in zip(table["tasks"], values, strict=True):
                for key, result in first.items():
                    same = (key[0], result.main) == (task, table["score"]) and key[1] != "dev"
                    if same and not math.isnan(value):
                        unit = 1 if result.in_percent else 100
                        row = rows.setdefault(name, {"name": name, "published": [], "scores": {}})
                        row["scores"][columns[key]] = {"value": unit * value}
                        if table["title"] not in row["published"]:
                            row["published"].append(table["title"])
    return list(rows.values())


def _read_about(path: Path | None) -> dict[str, About]:
    if path is None:
        return {}
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(tree, dict[str, About])
    except (OSError, ValueError) as error:
        what = "TOML with a table for each encoder (title, licence, data, supervised)"
        raise InputError(f"{path} can't be read as {what}: {error}.") from None
