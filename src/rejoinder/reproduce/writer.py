"""The report of a reproduction: `index.html`, `tables.md`, `results.json` and the figures."""

import datetime
import html
import json

import polars as pl

from rejoinder.datasets.sts import read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation.report.tables import Table
from rejoinder.evaluation.report.writer import STYLE
from rejoinder.evaluation.results_file import read_items
from rejoinder.evaluation.results_format import as_tree
from rejoinder.files.atomic import write_text
from rejoinder.reproduce.figures import figure7, figure8
from rejoinder.reproduce.tables import tables_of
from rejoinder.reproduce.work import MODELS, Options, Reproduced
from rejoinder.version import VERSION

_SHOWN = "Reddit+SNLI"
"""The model of table 5 and figure 7."""


def write_reproduction(work: Reproduced, options: Options) -> None:
    """Write the report into the folder of the reproduction."""
    items = _items(work, options)
    tables = tables_of(work, options.encoder, items)
    figures = {
        "figure7": figure7(items, f"{_SHOWN} ({options.encoder})"),
        "figure8": figure8(work.curve, f"Reddit and a share of SNLI ({options.encoder})"),
    }
    out = options.out
    for name, svg in figures.items():
        write_text(out / f"{name}.svg", svg)
    write_text(out / "tables.md", f"{_about(options)}\n" + "\n".join(t.markdown() for t in tables))
    tree = {
        "format_version": 1,
        "rejoinder_version": VERSION,
        "encoder": options.encoder,
        "budget": options.budget.name,
        "seed": options.seed,
        "facts": work.facts,
        "missing": list(work.missing),
        "results": {name: [as_tree(one) for one in work.results[name]] for name in MODELS},
        "figure8": {f"{s:g}": [as_tree(one) for one in found] for s, found in work.curve.items()},
    }
    write_text(out / "results.json", json.dumps(tree, indent=1, allow_nan=False) + "\n")
    write_text(out / "index.html", _page(options, tables, list(figures.values())))


def _about(options: Options) -> str:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"# Yang et al. 2018, reproduced with the encoder `{options.encoder}`\n\n"
        f"`rejoinder reproduce --encoder {options.encoder} --budget {options.budget.name} --seed "
        f"{options.seed}`, {date}, rejoinder {VERSION}. The published Tables 2 to 6 are the "
        "Transformer's.\n"
    )


def _items(work: Reproduced, options: Options) -> pl.DataFrame:
    """Scores, labels and texts of STS-B test by the model that is shown."""
    results = work.results[_SHOWN]
    result = next(one for one in results if (one.task, one.split) == ("stsb/angular", "test"))
    frame = read_items(options.out / "work" / "results" / f"{_SHOWN}.json", result)
    pairs = read_stsb(options.data, "test")
    if len(pairs) != len(frame):
        raise InputError(f"the STS Benchmark below {options.data} is not the one that was scored.")
    texts = [f"{a} | {b}" for a, b in zip(pairs.first, pairs.second, strict=True)]
    return frame.with_columns(pl.Series("text", texts))


def _page(options: Options, tables: list[Table], figures: list[str]) -> str:
    parts = "".join(table.html() for table in tables)
    drawn = "".join(f"<figure>{svg[svg.index('<svg') :]}</figure>" for svg in figures)
    title, _, about = _about(options).partition("\n\n")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>Yang et al. 2018, reproduced</title><style>{STYLE}</style></head><body>"
        f"<h1>{html.escape(title.strip('# '))}</h1><p>{html.escape(about)}</p>"
        f"{parts}<h2>Figures 7 and 8</h2>{drawn}</body></html>\n"
    )
