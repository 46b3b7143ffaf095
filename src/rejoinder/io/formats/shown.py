"""What Python and notebooks show of a large result: a title, and a table of the first rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

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
