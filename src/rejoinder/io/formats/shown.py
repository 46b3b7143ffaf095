"""Displays large results in Python and notebooks: a title, and a table of the first rows.

Also parses amounts of memory and time as people write them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rejoinder.errors import InputError

MOST_ROWS = 10
_WIDTH = 60
"""Characters of a cell."""


@dataclass(frozen=True)
class View:
    """What is shown of a result."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    """Not more rows need to be made than `MOST_ROWS`."""
    count: int | None = None
    """The number of all rows, if there are more."""

    @property
    def cells(self) -> list[list[str]]:
        """The rows as short texts without line ends."""
        return [[_cell(value) for value in row] for row in self.rows]

    @property
    def rest(self) -> str:
        """What is said of the rows that are not shown."""
        more = (self.count or 0) - len(self.rows)
        return f"… and {more:,} more" if more > 0 else ""


class Shown:
    """Base class of results whose `repr`, and whose form in a notebook, is a short table."""

    def view(self) -> View:
        """Returns what is shown."""
        raise NotImplementedError

    def __repr__(self) -> str:
        view = self.view()
        table = text_table(view.columns, view.cells) if view.rows else ""
        return "\n".join(filter(None, (view.title, table, view.rest)))

    def _repr_html_(self) -> str:
        view = self.view()

        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(one)}</{tag}>" for one in cells) + "</tr>"

        body = "".join(line("td", row) for row in view.cells)
        rest = f"<p>{view.rest}</p>" if view.rest else ""
        return (
            f"<table><caption>{escape(view.title)}</caption>"
            f"<thead>{line('th', view.columns)}</thead><tbody>{body}</tbody></table>{rest}"
        )


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns lines of aligned columns; the first column is aligned to the left.

    >>> print(text_table(("task", "n"), [("stsb/cosine", "9"), ("mr", "10")]))
    task          n
    stsb/cosine   9
    mr           10
    """
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [
        [f"{row[0]:{widths[0]}}", *(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in (columns, *rows)
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def parse_bytes(memory: str, option: str = "`memory`") -> float:
    """Returns the bytes of an amount of memory.

    >>> parse_bytes("800MB"), parse_bytes("1.5 GiB")
    (800000000.0, 1610612736.0)

    Raises:
        InputError: it is not an amount.
    """
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B", memory)
    if amount is None:
        raise InputError(f"{option} {memory!r} is not an amount; write it as 2GB or 800MB.")
    number, unit, binary = amount.groups()
    power = " KMGT".index(unit)
    return float(number) * float((1024 if binary else 1000) ** power)


def parse_duration(text: str, option: str) -> float:
    """Returns the seconds of a length of time.

    >>> parse_duration("90s", "--within"), parse_duration("10m", "--within")
    (90.0, 600.0)

    Raises:
        InputError: it is not a length of time.
    """
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text)
    if amount is None:
        raise InputError(f"{option} {text!r} is not a length of time; write it as 90s, 10m or 2h.")
    number, unit = amount.groups()
    return float(number) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[unit]
