"""Prints tables that fit the terminal, by leaving out columns rather than splitting words."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from rejoinder.cli.output import is_number

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
    cells = [[_cell(value) for value in row] for row in rows]
    shown = _fitting(columns, cells, console.width)
    widths = _widths(columns, cells, shown, console.width)
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
    for index, width in zip(shown, widths, strict=True):
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
        table.add_row(*(row[index] for index in shown))
    console.print(table, markup=False)
    left_out = [column.name for index, column in enumerate(columns) if index not in shown]
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


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Returns the indices of the columns to show."""
    shown = list(range(len(columns)))
    while _width(columns, cells, shown) > width:
        spare = [index for index in shown if columns[index].spare]
        if not spare:
            break
        shown.remove(max(spare, key=lambda index: columns[index].spare))
    return shown


def _widths(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], shown: list[int], width: int
) -> list[int]:
    """Returns the widths of the columns shown.

    If they do not fit, the widest column is narrowed, preferably one that wraps.
    """
    widths = [_natural(columns, cells, index) for index in shown]
    excess = sum(widths) + _GAP * (len(shown) - 1) - width
    if excess > 0:
        wrapping = [position for position, index in enumerate(shown) if columns[index].wraps]
        chosen = max(wrapping or range(len(shown)), key=widths.__getitem__)
        widths[chosen] = max(_MIN_WIDTH, widths[chosen] - excess)
    return widths


def _width(columns: Sequence[Column], cells: Sequence[Sequence[str]], shown: list[int]) -> int:
    """Returns the smallest width at which these columns can be read."""
    widths = [_needed(columns, cells, index) for index in shown]
    return sum(widths) + _GAP * (len(shown) - 1)


def _needed(columns: Sequence[Column], cells: Sequence[Sequence[str]], index: int) -> int:
    """Returns the smallest readable width of a column."""
    natural = _natural(columns, cells, index)
    if not columns[index].wraps:
        return natural
    words = [len(word) for row in cells for word in row[index].split()]
    return min(natural, max(_READABLE, *words, 0))


def _natural(columns: Sequence[Column], cells: Sequence[Sequence[str]], index: int) -> int:
    """Returns the width of a column without wrapping."""
    from rich.cells import cell_len

    return max(cell_len(text) for text in (columns[index].name, *(row[index] for row in cells)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " ".join(str(value).split())
