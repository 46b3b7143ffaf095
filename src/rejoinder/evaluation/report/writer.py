"""Writes a report of results files: tables, plots and a page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rejoinder.errors import InputError, require
from rejoinder.evaluation.report.plots import bars, predicted_against_gold
from rejoinder.evaluation.report.tables import Table, beside_published, names, overview
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.results_file import items_folder, read_results
from rejoinder.evaluation.variants import variants, with_label
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output


def write_report(paths: Sequence[Path], out: Path, *, overwrite: bool = False) -> list[Path]:
    """Writes `index.html`, `tables.md`, `tables.tex`, `tables.csv` and the plots as SVG.

    `paths` are results files, one per encoder. `overwrite` replaces a folder that is not empty.
    Returns the files written, sorted by name.

    Raises:
        InputError: a file is not a results file, none has results, or `out` is occupied.
        MissingExtraError: Jinja2 or matplotlib is not installed.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    read = [*paths, *map(items_folder, paths)]
    with claim_output(out, overwrite=overwrite, inputs=read):
        contents = _contents(paths)
        with new_folder(out, overwrite=overwrite) as folder:
            for name, content in contents.items():
                (folder / name).write_text(content, "utf-8")
    return [out / name for name in sorted(contents)]


def _contents(paths: Sequence[Path]) -> dict[str, str]:
    """Returns the content of each file of the report, by file name."""
    require("report", "jinja2", "matplotlib")
    runs = [read_results(path) for path in paths]
    if not any(runs):
        raise InputError(f"{', '.join(map(str, paths))}: no results to report.")
    tables = [overview(runs), *beside_published(runs)]
    plots = {"bars.svg": bars(runs)}
    for number, plot in enumerate(_scatter_plots(runs), 1):
        plots[f"gold-{number}.svg"] = plot
    about = [
        {
            "name": name,
            "count": len(run),
            "date": run[0].date,
            "version": run[0].versions.get("rejoinder", ""),
            "seed": run[0].seed,
            "platform": run[0].machine.get("platform", ""),
        }
        for name, run in zip(names(runs), runs, strict=True)
        if run
    ]
    return {
        "index.html": render_page("results.html.j2", tables, list(plots.values()), runs=about),
        "tables.md": "\n".join(table.markdown() for table in tables),
        "tables.tex": "\n".join(table.latex() for table in tables),
        "tables.csv": "\n".join(table.csv() for table in tables),
        **plots,
    }


def _scatter_plots(runs: Sequence[Sequence[Result]]) -> Iterator[str]:
    """Yields a plot for each result on the STS Benchmark that has predictions."""
    labels = variants(result for run in runs for result in run)
    for name, run in zip(names(runs), runs, strict=True):
        for result in run:
            if result.task.startswith("stsb/") and result.items is not None:
                title = with_label(f"{name}: {result.task}", result.split, labels[result.key])
                yield predicted_against_gold(title, result.items.predictions, result.items.gold)


def render_page(
    template: str, tables: Sequence[Table], figures: Sequence[str], **values: object
) -> str:
    """Returns a page that needs no other file, from a template such as `results.html.j2`.

    The figures are SVG documents, which are not escaped. `values` are what else the template shows.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    require("report", "jinja2")
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rejoinder", "data/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    # inside HTML, an SVG has neither an XML declaration nor a document type
    inline = [Markup(svg[svg.index("<svg") :]) for svg in figures]  # noqa: S704 -- our own SVG
    return environment.get_template(template).render(tables=tables, figures=inline, **values)
