"""`rejoinder data`: lists, downloads and lays out the data sets of tasks and recipes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import output
from rejoinder.cli.messages import split_lists
from rejoinder.cli.options import PairsOption, epilog, prints
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.datasets.acquire.fetch import Failed
    from rejoinder.datasets.acquire.layout import Added, Presence
    from rejoinder.datasets.catalogue import DataSet

_EPILOG = epilog(
    "rejoinder data list",
    "rejoinder data list stsb --json",
    "rejoinder data add stsb Stsbenchmark.tar.gz",
    "rejoinder data add all downloads/ --data data",
    "rejoinder data fetch stsb,snli",
    "rejoinder data licences dan-multitask-modern --pairs pairs/",
)

DataFolder = Annotated[Path, typer.Option("--data", help="Folder of data sets.")]
Overwrite = Annotated[bool, "Replace files that differ."]


commands = typer.Typer(
    help="List, download and lay out data sets.", no_args_is_help=True, epilog=_EPILOG
)


@commands.command("list", epilog=_EPILOG)
@prints("json")
def list_sets(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME[,NAME]",
            help="Data sets or groups to show in full. Default: a table of all.",
        ),
    ] = None,
    data: DataFolder = Path("data"),
) -> None:
    """Show data sets: rows, licence, citation, address, SHA-256, and whether they are here."""
    from rejoinder.datasets.acquire.layout import presence
    from rejoinder.datasets.catalogue import catalogue, select

    chosen = split_lists(names or [])
    shown = [(dataset, presence(data, dataset)) for dataset in select(chosen or ["all"])]
    remark = catalogue().remark
    if output.asked_for("json"):
        sets = [{**asdict(one), "rows": one.rows, "here": asdict(here)} for one, here in shown]
        output.print_json({"remark": remark, "sets": sets})
    elif chosen:
        for dataset, here in shown:
            _show(dataset, here)
        typer.echo(f"  {remark}")
    else:
        columns = ("id", "rows", "here", "what", "licence", "citation")
        rows = [
            (one.id, one.rows, here.state, one.what, one.licence, one.citation)
            for one, here in shown
        ]
        _print_rows(columns, rows, f"Data sets below {data}")
        notes = [note for _, here in shown for note in (*here.problems, *here.notes)]
        hint = "`rejoinder data list NAME` shows licence, citation, addresses, files and SHA-256."
        for sentence in (*notes, hint, remark):
            output.status_line(f"  {sentence}")


@commands.command("add", epilog=_EPILOG)
@prints("json")
def add_sets(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME[,NAME]...",
            help="Data sets or groups. all: every data set that is recognised.",
        ),
    ],
    files: Annotated[list[Path], typer.Argument(help="Archives, files or folders.")],
    data: DataFolder = Path("data"),
    overwrite: Overwrite = False,
) -> None:
    """Recognise and check local files, and copy them into the folder of data sets."""
    from rejoinder.datasets.acquire.layout import add
    from rejoinder.datasets.catalogue import select

    added = add(select(split_lists([name])), files, data, overwrite=overwrite)
    _print_added(added, data)


@commands.command("fetch", epilog=_EPILOG)
@prints("json")
def fetch_sets(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME[,NAME]", help="Data sets (stsb) or groups (sts, senteval, probing, all)."
        ),
    ],
    data: DataFolder = Path("data"),
    overwrite: Overwrite = False,
) -> None:
    """Download data sets from their official addresses and lay them out.

    The same command resumes what was interrupted.
    """
    from rejoinder.cli.progress import Bar
    from rejoinder.datasets.acquire.fetch import Failed, fetch
    from rejoinder.datasets.catalogue import select

    datasets = select(split_lists(names))
    with Bar("bytes") as bar:
        results = list(fetch(datasets, data, bar.show, overwrite=overwrite))
    failed = [result for result in results if isinstance(result, Failed)]
    _print_added(results, data)
    for failure in failed:
        typer.echo(f"rejoinder: {failure.id}: {output.as_options(failure.reason)}", err=True)
    if failed:
        raise typer.Exit(2)


@commands.command("licences", epilog=_EPILOG)
@prints("json", "tsv")
def list_licences(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Config of `rejoinder train`: show only its data. Default: all known data.",
        ),
    ] = None,
    pairs: PairsOption = None,
) -> None:
    """Show the licences of all data that the recipes use, or of a config's data.

    A source of conversations is known by the files that --pairs was extracted from. The table does
    not have your data: its licence is not stated, and counts as not open.
    """
    from rejoinder.datasets.catalogue import all_rows

    if config is None and pairs is not None:
        raise InputError("--pairs is read with a config; name a config.")
    if config is None:
        shown = all_rows()
    else:
        from rejoinder.corpus.writer import open_pairs
        from rejoinder.training.config.loading import load_config
        from rejoinder.training.data.preparation import data_rows

        loaded = load_config(config)
        shown = data_rows(loaded, None if pairs is None else open_pairs(pairs))
    columns = ("name", "rows", "licence", "open", "kind", "from", "citation")
    rows = [
        (row.name, "" if row.rows is None else row.rows, str(row.licence),
         "yes" if row.licence.open else "no", row.kind, row.licence.origin, row.licence.citation)
        for row in shown
    ]  # fmt: skip
    _print_rows(columns, rows, "Licences of training data")
    if config is not None:
        count = sum(not row.licence.open for row in shown)
        output.status_line(f"  {count} of {len(shown)} are not openly licensed")


def _print_rows(columns: "Sequence[str]", rows: "Sequence[Sequence[Any]]", title: str) -> None:
    """Prints rows; in a table, only the first four columns, which fit into 80 characters."""
    count = 4 if output.form_of_output() == "table" else len(columns)
    output.print_rows(columns[:count], [row[:count] for row in rows], title)


def _print_added(results: "Sequence[Added | Failed]", data: Path) -> None:
    """Prints the number of files of each set, and its notes."""
    from rejoinder.datasets.acquire.layout import Added

    if output.asked_for("json"):
        output.print_json([asdict(result) for result in results])
        return
    for result in results:
        if isinstance(result, Added):
            typer.echo(f"{result.id}: {len(result.files)} files below {data}")
            for note in result.notes:
                typer.echo(f"  {note}")


def _show(dataset: "DataSet", here: "Presence") -> None:
    typer.echo(f"{dataset.id}: {dataset.name}. {dataset.what}.")
    facts = [
        ("rows", f"{dataset.rows:,}. {dataset.note}".rstrip()),
        ("licence", dataset.licence),
        ("citation", dataset.citation),
        ("here", here.state),
        *(("address", address) for address in dataset.addresses or dataset.pages),
        *((f"SHA-256 of {name}", digest) for name, digest in (dataset.sha256 or {}).items()),
    ]
    for file in dataset.files:
        rows = f"{file.rows:,} rows" if file.rows else "rows unknown"
        state = "not here" if file.path in here.missing else "here"
        facts.append((file.path, f"{rows}, {state if file.needed else 'optional'}"))
    for label, text in facts:
        typer.echo(f"  {label}: {text}")
    for sentence in (*here.problems, *here.notes):
        typer.echo(f"  {sentence}")
