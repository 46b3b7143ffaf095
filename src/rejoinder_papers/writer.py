"""Writes the report of a reproduction: `index.html`, `tables.md`, `results.json` and figures."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rejoinder.datasets.semeval import read_stsb
from rejoinder.errors import InputError
from rejoinder.evaluation.metrics import Items, joined
from rejoinder.evaluation.report import (
    COLOURS,
    new_figure,
    predicted_against_gold,
    render_page,
    svg_of,
)
from rejoinder.evaluation.results import Result
from rejoinder.io.files.atomic import write_text
from rejoinder.version import VERSION
from rejoinder_papers.tables import tables_of
from rejoinder_papers.work import Work

_SHOWN = "Reddit+SNLI"
"""The model of table 5 and figure 7."""
_LINES = (
    ("dev", "all", "o-"),
    ("test", "all", "s-"),
    ("dev", "captions", "^--"),
    ("test", "captions", "v--"),
)
"""Split, genre and marker of each line. Markers tell the lines apart without colours."""


def write_reproduction(work: Work) -> None:
    """Writes the report into the folder `work.options.out`.

    Raises:
        InputError: the STS Benchmark in the data folder is not the one that was scored.
        MissingExtraError: Jinja2 or matplotlib is not installed.
        StorageError: a file can't be written.
    """
    options = work.options
    items = _items(work)
    tables = tables_of(work, options.encoder, items)
    title = f"STS Benchmark, test: {_SHOWN} ({options.encoder})"
    figures = {
        "figure7": predicted_against_gold(title, items.predictions, items.gold),
        "figure8": _figure8(work.curve, f"Reddit and a share of SNLI ({options.encoder})"),
    }
    about = {
        "encoder": options.encoder,
        "command": f"rejoinder reproduce --encoder {options.encoder} --budget "
        f"{options.budget.name} --seed {options.seed}"
        + "".join(f" --also {place}" for place in options.also),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": VERSION,
        "note": _note(work),
    }
    heading = (
        f"# Yang et al. 2018, reproduced with the encoder `{about['encoder']}`\n\n"
        f"`{about['command']}`, {about['date']}, rejoinder {about['version']}. {about['note']}\n\n"
    )
    contents = {
        **{f"{name}.svg": svg for name, svg in figures.items()},
        "tables.md": heading + "\n".join(table.markdown() for table in tables),
        "results.json": _results(work),
        "index.html": render_page(
            "reproduction.html.j2", tables, list(figures.values()), about=about
        ),
    }
    for name, content in contents.items():
        write_text(options.out / name, content)


def _note(work: Work) -> str:
    note = "The published Tables 2 to 6 are the Transformer's."
    if not work.also:
        return note
    names = " and ".join(f"`{name}`" for name in work.also)
    return f"{note} {names}: trained elsewhere, by another recipe (`rejoinder reproduce --also`)."


def _results(work: Work) -> str:
    options = work.options
    tree = {
        "format_version": 1,
        "rejoinder_version": VERSION,
        "encoder": options.encoder,
        "budget": options.budget.name,
        "seed": options.seed,
        "facts": work.facts,
        "missing": list(work.missing),
        "results": {
            name: [result.as_tree() for result in results] for name, results in work.results.items()
        },
        "figure8": {
            f"{share:g}": [result.as_tree() for result in results]
            for share, results in work.curve.items()
        },
    }
    return json.dumps(tree, indent=1, allow_nan=False) + "\n"


def _items(work: Work) -> Items:
    """Returns predictions, gold and texts of the shown model on STS-B test."""
    [items] = [
        result.items
        for result in work.results[_SHOWN]
        if (result.task, result.split) == ("stsb/angular", "test")
    ]
    data = work.options.data
    pairs = read_stsb(data, "test")
    if items is None or list(items.ids) != pairs.ids:
        raise InputError(f"the STS Benchmark below {data} is not the one that was scored.")
    return replace(items, texts=joined(pairs.first, pairs.second))


def _figure8(curve: Mapping[float, Sequence[Result]], model: str) -> str:
    """Plots Pearson's r on STS-B against the share of the NLI training data, from 0 to 1."""
    figure, axes = new_figure(5.5, 4)
    shares = sorted(curve)
    for (split, genre, marker), colour in zip(_LINES, COLOURS, strict=False):
        values = [_pearson(curve[share], split, genre) for share in shares]
        percent = [100 * share for share in shares]
        axes.plot(percent, values, marker, color=colour, label=f"{genre}, {split}")
    axes.set_xlabel("share of the NLI training data, %")
    axes.set_ylabel("Pearson's r on the STS Benchmark")
    axes.set_title(model, fontsize=9)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return svg_of(figure)


def _pearson(results: Sequence[Result], split: str, genre: str) -> float:
    [result] = [result for result in results if result.split == split]
    scores = result.scores if genre == "all" else result.groups[f"main-{genre}"].scores
    return float(scores["pearson"])
