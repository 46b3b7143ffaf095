"""What commands share in talking: tables for a terminal, TSV and JSON for machines."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


_ONE_CELL = str.maketrans("\t\n\r", "   ")


def stderr() -> "Console":
    """The console for people: progress, notes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output; numbers are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", header_style="bold")
    listed = [[_cell(value) for value in row] for row in rows]
    for place, column in enumerate(columns):
        numbers = all(_is_number(row[place]) for row in listed)
        table.add_column(column, justify="right" if numbers and listed else "left", overflow="fold")
    for row in listed:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table, markup=False)


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> None:
    """Rows as a `table`, as `tsv` with a header, or as `json`: one list of objects."""
    if form == "json":
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(listed, ensure_ascii=False))
    elif form == "tsv":
        typer.echo("\t".join(columns))
        for row in rows:
            typer.echo("\t".join(str(value).translate(_ONE_CELL) for value in row))
    else:
        print_table("", columns, rows)


def form_of(*, as_json: bool, as_tsv: bool) -> str:
    """`json` or `tsv` as asked for; else a table on a terminal and TSV elsewhere."""
    if as_json and as_tsv:
        raise typer.BadParameter("--json and --tsv exclude each other")
    if as_json:
        return "json"
    return "table" if sys.stdout.isatty() and not as_tsv else "tsv"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}" if sys.stdout.isatty() else str(value)
    return str(value).replace("\n", " ")


def _is_number(text: str) -> bool:
    return (
        text.replace(",", "").replace(".", "").replace("-", "").replace("%", "").strip().isdigit()
    )
