"""Prints results as tables, TSV or JSON, and notes on standard error."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from rejoinder.inference.encoding import EncodedFile

_ONE_CELL = str.maketrans("\t\n\r", "   ")

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Switches notes and progress on standard error off (`quiet`) or on.

    The setting lasts until the next call. The root command switches them on, so that commands run
    one after another in a process do not inherit it.
    """
    global _quiet
    _quiet = quiet


def stderr() -> "Console":
    """Returns the console for progress and messages. It prints nothing after `set_quiet(True)`."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, quiet=_quiet)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table on standard output, with numbers aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", header_style="bold")
    cells = [[cell(value) for value in row] for row in rows]
    for index, column in enumerate(columns):
        numeric = all(is_number(row[index]) for row in cells)
        table.add_column(column, justify="right" if numeric and cells else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table, markup=False)


def note(sentence: str) -> None:
    """Prints `rejoinder: ` and a sentence on standard error, unless quiet."""
    status_line(f"rejoinder: {sentence}")


def status_line(text: str) -> None:
    """Prints a line on standard error, such as `wrote e.npy`, unless quiet."""
    if not _quiet:
        typer.echo(text, err=True)


def note_unknown(count: int, total: int, texts: str, which: str = "") -> None:
    """Prints how many `texts` (a plural noun) have mostly unknown words, if any."""
    if count:
        note(
            f"most words of {count:,} of {total:,} {texts} are unknown to the model{which}; are "
            "they in the language that it was trained on? Their scores mean little"
        )


def note_zero(count: int, total: int) -> None:
    """Prints how many sentences have the zero vector, if any."""
    if count:
        note(f"no known word in {count:,} of {total:,} sentences: their vectors are zero")


def print_encoded(written: "EncodedFile", out: Path, *, as_json: bool) -> None:
    """Says which file of embeddings was written to `out`, and how many sentences are zero."""
    if as_json:
        typer.echo(json.dumps({**asdict(written), "path": str(out)}, ensure_ascii=False))
    else:
        status_line(f"wrote {out}: {written.n} x {written.dim} float32")
    note_zero(written.unknown, written.n)


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str, title: str = ""
) -> None:
    """Prints rows as a `table` with a title, `tsv` with a header, or `json`, a list of objects."""
    if form == "json":
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(objects, ensure_ascii=False))
    elif form == "tsv":
        print_lines("\t".join(_in_tsv(value) for value in row) for row in (columns, *rows))
    else:
        print_table(title, columns, rows)


def _in_tsv(value: Any) -> str:
    """Returns a value in one cell; six digits of a number say all that it means."""
    return f"{value:.6g}" if isinstance(value, float) else str(value).translate(_ONE_CELL)


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines on standard output. `typer.echo`, in contrast, flushes after each line."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def form_of(*, as_json: bool, as_tsv: bool = False) -> str:
    """Returns the requested form, by default `table` on a terminal and `tsv` elsewhere.

    Raises:
        typer.BadParameter: both `--json` and `--tsv` are given.
    """
    if as_json and as_tsv:
        raise typer.BadParameter("--json and --tsv exclude each other")
    if as_json:
        return "json"
    return "table" if sys.stdout.isatty() and not as_tsv else "tsv"


def cell(value: Any) -> str:
    """Returns the text of a value in a table for a terminal."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}" if sys.stdout.isatty() else str(value)
    return str(value).replace("\n", " ")


def is_number(text: str) -> bool:
    """Returns whether a cell is a number, which tables align to the right.

    >>> is_number("-1,234.5"), is_number("<0.01%"), is_number("two")
    (True, True, False)
    """
    return text.translate(str.maketrans("", "", ",.+-%<")).strip().isdigit()
