"""Prints tables that fit the terminal, by leaving out columns rather than splitting words."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from rejoinder.cli.output import cell, is_number

_GAP = 2
"""Number of characters between two columns."""
_MIN_WIDTH = 12
"""Smallest width, in characters, of a column of shortened text."""
_READABLE = 24
"""Width to which a wrapping column may be narrowed before other columns are left out."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    spare: int = 0
    """Columns with a higher number are left out earlier. Those with 0 are never left out."""
    wraps: bool = False
    """Whether its text may continue on further lines, broken between words."""


def print_fitted(title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table on standard output that is no wider than the terminal.

    If columns had to be left out, a line below the table names them.
    """
    from rich import box
    from rich.table import Table

    console = _console()
    cells = [[" ".join(cell(value).split()) for value in row] for row in rows]
    widths = _fitted_widths(columns, cells, console.width)
    table = Table(
        title=title or None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, 1),
        header_style="bold",
    )
    for index, width in widths.items():
        column = columns[index]
        numeric = all(is_number(row[index]) for row in cells) and bool(cells)
        table.add_column(
            column.name,
            justify="right" if numeric else "left",
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            width=width,
        )
    for row in cells:
        table.add_row(*(row[index] for index in widths))
    console.print(table, markup=False)
    left_out = [column.name for index, column in enumerate(columns) if index not in widths]
    if left_out:
        print_wrapped(
            f"No room for {', '.join(left_out)}: a wider terminal, a pipe or --json shows them.", ""
        )


def print_wrapped(text: str, indent: str = "  ") -> None:
    """Prints a paragraph on standard output, broken between words."""
    typer.echo(
        textwrap.fill(
            text, _console().width, initial_indent=indent, subsequent_indent=f"{indent}  ",
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def _fitted_widths(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int
) -> dict[int, int]:
    """Returns the width of each column to show, by its index.

    Columns that can be spared are left out while the smallest readable widths do not fit. If the
    natural widths then do not fit, the widest column is narrowed, preferably one that wraps.
    """
    from rich.cells import cell_len

    natural, readable = [], []
    for index, column in enumerate(columns):
        texts = [column.name, *(row[index] for row in cells)]
        natural.append(max(map(cell_len, texts)))
        words = [len(word) for text in texts[1:] for word in text.split()]
        wrapped = max(_READABLE, *words, 0) if column.wraps else natural[index]
        readable.append(min(natural[index], wrapped))
    shown = list(range(len(columns)))
    while sum(readable[index] + _GAP for index in shown) - _GAP > width:
        spare = max(shown, key=lambda index: columns[index].spare)
        if not columns[spare].spare:
            break
        shown.remove(spare)
    widths = {index: natural[index] for index in shown}
    excess = sum(widths.values()) + _GAP * (len(shown) - 1) - width
    if excess > 0:
        wrapping = [index for index in shown if columns[index].wraps]
        chosen = max(wrapping or shown, key=widths.__getitem__)
        widths[chosen] = max(_MIN_WIDTH, widths[chosen] - excess)
    return widths
