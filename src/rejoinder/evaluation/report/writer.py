"""The files of a report."""

import html
from collections.abc import Sequence
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.evaluation.report.plots import bars, predicted_against_gold
from rejoinder.evaluation.report.tables import beside_published, names, overview
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.results_file import read_items, read_results
from rejoinder.evaluation.variants import variants
from rejoinder.files.atomic import new_folder
from rejoinder.files.claims import claim_output

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.2rem .6rem;
border-bottom:1px solid #ccc;text-align:right}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto}figure{display:inline-block;margin:.5rem}"""


def write_report(places: Sequence[Path], out: Path, *, overwrite: bool = False) -> None:
    """Write `tables.md`, `.tex`, `.csv`, the plots and `index.html` of results files.

    Raises:
        InputError: a file is no results file, none has results, or `out` is occupied.
        MissingExtraError: matplotlib is not installed.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    with claim_output(out, overwrite=overwrite):
        _write(places, out, overwrite=overwrite)


def _write(places: Sequence[Path], out: Path, *, overwrite: bool) -> None:
    runs = [read_results(place) for place in places]
    if not any(runs):
        raise InputError(f"{', '.join(map(str, places))}: no results to report.")
    tables = [overview(runs), *beside_published(runs)]
    plots = {"bars": bars(runs)}
    labels = variants(result for run in runs for result in run)
    for place, name, run in zip(places, names(runs), runs, strict=True):
        for result in run:
            if result.task.startswith("stsb/") and result.predictions:
                items = read_items(place, result)
                label = f" ({labels[result.key]})" if labels[result.key] else ""
                title = f"{name}: {result.task} {result.split}{label}"
                plots[f"gold-{len(plots)}"] = predicted_against_gold(
                    title, items["prediction"].to_numpy(), items["gold"].to_numpy()
                )
    with new_folder(out, overwrite=overwrite) as folder:
        for suffix, parts in {
            "md": [table.markdown() for table in tables],
            "tex": [table.latex() for table in tables],
            "csv": [table.csv() for table in tables],
        }.items():
            (folder / f"tables.{suffix}").write_text("\n".join(parts), "utf-8")
        for name, svg in plots.items():
            (folder / f"{name}.svg").write_text(svg, "utf-8")
        page = _page(runs, [table.html() for table in tables], list(plots.values()))
        (folder / "index.html").write_text(page, "utf-8")


def _page(runs: Sequence[Sequence[Result]], tables: Sequence[str], plots: Sequence[str]) -> str:
    facts = "".join(
        f"<li>{html.escape(name)}: {len(run)} results, {html.escape(run[0].date)}, rejoinder "
        f"{html.escape(run[0].versions.get('rejoinder', ''))}, seed {run[0].seed}, "
        f"{html.escape(str(run[0].machine.get('platform', '')))}</li>"
        for name, run in zip(names(runs), runs, strict=True)
        if run
    )
    # one page: an SVG's XML declaration has no place within HTML
    figures = "".join(f"<figure>{svg[svg.index('<svg') :]}</figure>" for svg in plots)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>rejoinder: results</title>"
        f"<style>{STYLE}</style></head><body><h1>Results</h1><ul>{facts}</ul>"
        f"{''.join(tables)}{figures}</body></html>\n"
    )
