"""Writes the report of a reproduction: `index.html`, `tables.md`, `results.json` and figures."""

import datetime
import json

import polars as pl

from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation.report.pages import render_page
from rejoinder.evaluation.report.plots import predicted_against_gold
from rejoinder.evaluation.results_file import read_items
from rejoinder.evaluation.results_format import as_tree
from rejoinder.files.atomic import write_text
from rejoinder.reproduce.figures import figure8
from rejoinder.reproduce.tables import tables_of
from rejoinder.reproduce.work import MODELS, Options, Reproduced
from rejoinder.version import VERSION

_SHOWN = "Reddit+SNLI"
"""The model of table 5 and figure 7."""


def write_reproduction(work: Reproduced, options: Options) -> None:
    """Writes the report into the folder `options.out`.

    Raises:
        InputError: the STS Benchmark is not the one that was scored.
        MissingExtraError: Jinja2 or matplotlib is not installed.
        StorageError: a file can't be written.
    """
    items = _items(work, options)
    tables = tables_of(work, options.encoder, items)
    title = f"STS Benchmark, test: {_SHOWN} ({options.encoder})"
    predictions, gold = items["prediction"].to_numpy(), items["gold"].to_numpy()
    figures = {
        "figure7": predicted_against_gold(title, predictions, gold),
        "figure8": figure8(work.curve, f"Reddit and a share of SNLI ({options.encoder})"),
    }
    about = {
        "encoder": options.encoder,
        "command": f"rejoinder reproduce --encoder {options.encoder} --budget "
        f"{options.budget.name} --seed {options.seed}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": VERSION,
        "note": "The published Tables 2 to 6 are the Transformer's.",
    }
    heading = (
        f"# Yang et al. 2018, reproduced with the encoder `{about['encoder']}`\n\n"
        f"`{about['command']}`, {about['date']}, rejoinder {about['version']}. {about['note']}\n\n"
    )
    contents = {
        **{f"{name}.svg": svg for name, svg in figures.items()},
        "tables.md": heading + "\n".join(table.markdown() for table in tables),
        "results.json": _results(work, options),
        "index.html": render_page(
            "reproduction.html.j2", tables, list(figures.values()), about=about
        ),
    }
    for name, content in contents.items():
        write_text(options.out / name, content)


def _results(work: Reproduced, options: Options) -> str:
    tree = {
        "format_version": 1,
        "rejoinder_version": VERSION,
        "encoder": options.encoder,
        "budget": options.budget.name,
        "seed": options.seed,
        "facts": work.facts,
        "missing": list(work.missing),
        "results": {name: [as_tree(result) for result in work.results[name]] for name in MODELS},
        "figure8": {
            f"{share:g}": [as_tree(result) for result in results]
            for share, results in work.curve.items()
        },
    }
    return json.dumps(tree, indent=1, allow_nan=False) + "\n"


def _items(work: Reproduced, options: Options) -> pl.DataFrame:
    """Returns predictions, gold and texts of the shown model on STS-B test."""
    results = work.results[_SHOWN]
    result = next(
        result for result in results if (result.task, result.split) == ("stsb/angular", "test")
    )
    frame = read_items(options.out / "work" / "results" / f"{_SHOWN}.json", result)
    pairs = read_stsb(options.data, "test")
    if len(pairs) != len(frame):
        raise InputError(f"the STS Benchmark below {options.data} is not the one that was scored.")
    texts = [f"{a} | {b}" for a, b in zip(pairs.first, pairs.second, strict=True)]
    return frame.with_columns(pl.Series("text", texts))
