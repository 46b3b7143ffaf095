"""Tables that fit the terminal: columns are left out before a number or a word is split."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

_GAP = 2
"""Characters between two columns."""
_LEAST = 12
"""Characters of a shortened text."""
_READABLE = 24
"""Characters to which text that wraps may be narrowed before other columns are left out."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    spare: int = 0
    """Columns with a higher number are left out earlier; those with 0 never."""
    wraps: bool = False
    """Whether its text may go over several lines, cut between words."""


def print_fitted(title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output, no wider than the terminal.

    Where it would be wider, columns are left out, and a line below says which.
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
    for place, width in zip(shown, widths, strict=True):
        column = columns[place]
        numbers = all(_is_number(row[place]) for row in cells) and bool(cells)
        table.add_column(
            column.name,
            justify="right" if numbers else "left",
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            width=width,
        )
    for row in cells:
        table.add_row(*(row[place] for place in shown))
    console.print(table, markup=False)
    left_out = [column.name for place, column in enumerate(columns) if place not in shown]
    if left_out:
        print_wrapped(
            f"No room for {', '.join(left_out)}: a wider terminal, a pipe and --json have all.", ""
        )


def print_wrapped(text: str, indent: str = "  ") -> None:
    """A paragraph on standard output, broken between words."""
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
    """Places of the columns that there is room for."""
    shown = list(range(len(columns)))
    while _width(columns, cells, shown) > width:
        spare = [place for place in shown if columns[place].spare]
        if not spare:
            break
        shown.remove(max(spare, key=lambda place: columns[place].spare))
    return shown


def _widths(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], shown: list[int], width: int
) -> list[int]:
    """Widths of the columns shown: where all are too wide, text that wraps or is long gets less."""
    found = [_natural(columns, cells, place) for place in shown]
    excess = sum(found) + _GAP * (len(shown) - 1) - width
    if excess > 0:
        wrapping = [row for row, place in enumerate(shown) if columns[place].wraps]
        chosen = max(wrapping or range(len(shown)), key=found.__getitem__)
        found[chosen] = max(_LEAST, found[chosen] - excess)
    return found


def _width(columns: Sequence[Column], cells: Sequence[Sequence[str]], shown: list[int]) -> int:
    """The width at which these columns can be read."""
    widths = [_needed(columns, cells, place) for place in shown]
    return sum(widths) + _GAP * (len(shown) - 1)


def _needed(columns: Sequence[Column], cells: Sequence[Sequence[str]], place: int) -> int:
    natural = _natural(columns, cells, place)
    if not columns[place].wraps:
        return natural
    words = [len(word) for row in cells for word in row[place].split()]
    return min(natural, max(_READABLE, *words, 0))


def _natural(columns: Sequence[Column], cells: Sequence[Sequence[str]], place: int) -> int:
    from rich.cells import cell_len

    return max(cell_len(text) for text in (columns[place].name, *(row[place] for row in cells)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " ".join(str(value).split())


def _is_number(text: str) -> bool:
    return text.translate(str.maketrans("", "", ",.+-%<")).isdigit()
