"""`rejoinder data`: the data sets of tasks and recipes: listed, laid out, downloaded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.acquire.fetch import Failed
    from rejoinder.acquire.inventory import Presence
    from rejoinder.acquire.layout import Added
    from rejoinder.datasets.catalogue import DataSet

_EPILOG = """Examples:

rejoinder data list

rejoinder data list stsb --json

rejoinder data add stsb Stsbenchmark.tar.gz

rejoinder data add all downloads/ --data data

rejoinder data fetch stsb snli
"""
_COLUMNS = ("id", "rows", "here", "what")
"""On a terminal of 80 columns; a pipe gets the licence and citation too."""
_FACTS = ("licence", "citation")

Root = Annotated[Path, typer.Option("--data", help="Folder of data sets.")]
Names = Annotated[
    list[str], typer.Argument(help="Data sets (stsb) or groups (sts, senteval, probing, all).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, no text.")]
Overwrite = Annotated[bool, typer.Option(help="Replace files that are there and differ.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(
        help="Data sets: what there is, laying files out, downloads.",
        no_args_is_help=True,
        epilog=_EPILOG,
    )
    commands.command("list", epilog=_EPILOG)(list_sets)
    commands.command("add", epilog=_EPILOG)(add_sets)
    commands.command("fetch", epilog=_EPILOG)(fetch_sets)
    app.add_typer(commands, name="data")


def list_sets(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets or groups, in full; default: a table.")
    ] = None,
    data: Root = Path("data"),
    as_json: AsJson = False,
) -> None:
    """Show the data sets: rows, licence, citation, address, SHA-256, and whether they are here."""
    import json

    from rejoinder.acquire.inventory import presence
    from rejoinder.cli.output import form_of, print_rows, print_table
    from rejoinder.datasets.catalogue import catalogue, select

    found = [(one, presence(data, one)) for one in select(names or ["all"])]
    if as_json:
        trees = [_tree(dataset, here) for dataset, here in found]
        remark = catalogue().remark
        typer.echo(json.dumps({"remark": remark, "sets": trees}, ensure_ascii=False))
        return
    if names:
        for dataset, here in found:
            _show(dataset, here)
        typer.echo(f"  {catalogue().remark}")
        return
    piped = form_of(as_json=False, as_tsv=False) == "tsv"
    rows = [(one.id, one.rows, here.state, one.what) for one, here in found]
    if piped:
        facts = [(one.licence, one.citation) for one, _ in found]
        whole = [(*row, *more) for row, more in zip(rows, facts, strict=True)]
        print_rows((*_COLUMNS, *_FACTS), whole, "tsv")
    else:
        print_table(f"Data sets below {data}", _COLUMNS, rows)
    for _, here in found:
        for sentence in (*here.problems, *here.notes):
            typer.echo(f"  {sentence}", err=piped)
    typer.echo(
        "  `rejoinder data list NAME` shows licence, citation, addresses, files and SHA-256.",
        err=piped,
    )
    typer.echo(f"  {catalogue().remark}", err=piped)


def add_sets(
    name: Annotated[str, typer.Argument(help="Data set or group; all: whatever is recognised.")],
    files: Annotated[list[Path], typer.Argument(help="Archives, files or folders.")],
    data: Root = Path("data"),
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Lay out local files in SentEval's folders: recognised by content, cleaned, rows counted."""
    from rejoinder.acquire.layout import add
    from rejoinder.datasets.catalogue import select

    _tell(add(select([name]), files, data, overwrite=overwrite), data, as_json=as_json)


def fetch_sets(
    names: Names,
    data: Root = Path("data"),
    overwrite: Overwrite = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds without a byte.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Download data sets from their official addresses, and lay them out; resumes by itself."""
    from rejoinder.acquire.fetch import Failed, fetch
    from rejoinder.cli.progress import download_bar
    from rejoinder.datasets.catalogue import select

    added, failed = [], []
    with download_bar() as progress:
        for one in fetch(select(names), data, progress, overwrite=overwrite, timeout=timeout):
            if isinstance(one, Failed):
                failed.append(one)
            else:
                added.append(one)
    _tell(added, data, as_json=as_json, failed=failed)
    for one in failed:
        typer.echo(f"rejoinder: {one.id}: {one.reason}", err=True)
    if failed:
        raise typer.Exit(2)


def _tell(
    results: "list[Added]", data: Path, *, as_json: bool, failed: "Sequence[Failed]" = ()
) -> None:
    """Text for a terminal; for a pipe a row a file, missing file or note."""
    import json
    from dataclasses import asdict

    from rejoinder.cli.output import form_of, print_rows

    form = form_of(as_json=as_json, as_tsv=False)
    if form == "json":
        listed: list[Added | Failed] = [*results, *failed]
        trees = [asdict(one) for one in listed]
        typer.echo(json.dumps(trees, ensure_ascii=False))
        return
    if form == "tsv":
        rows = [
            (one.id, kind, text)
            for one in results
            for kind, texts in (("file", one.files), ("missing", one.missing), ("note", one.notes))
            for text in texts
        ]
        print_rows(("set", "kind", "text"), rows, "tsv")
        return
    for one in results:
        typer.echo(f"{one.id}: {len(one.files)} files below {data}")
        for note in one.notes:
            typer.echo(f"  {note}")


def _tree(dataset: "DataSet", here: "Presence") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(dataset), "rows": dataset.rows, "here": asdict(here)}


def _show(dataset: "DataSet", here: "Presence") -> None:
    typer.echo(f"{dataset.id}: {dataset.name}. {dataset.what}.")
    lines = {
        "rows": f"{dataset.rows:,}. {dataset.note}".rstrip(),
        "licence": dataset.licence,
        "citation": dataset.citation,
        "here": here.state,
    }
    for label, text in lines.items():
        typer.echo(f"  {label}: {text}")
    for address in dataset.addresses or dataset.pages:
        typer.echo(f"  address: {address}")
    for name, digest in (dataset.sha256 or {}).items():
        typer.echo(f"  SHA-256 of {name}: {digest}")
    for file in dataset.files:
        rows = f"{file.rows:,} rows" if file.rows else "rows not known by file"
        there = "not here" if file.path in here.missing else "here"
        typer.echo(f"  {file.path}: {rows}, {there if file.needed else 'optional'}")
    for sentence in (*here.problems, *here.notes):
        typer.echo(f"  {sentence}")
