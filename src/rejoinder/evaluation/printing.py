"""Tables of plain text, for results that are printed from Python."""

from collections.abc import Sequence


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns lines of aligned columns; the first column is aligned to the left.

    >>> print(text_table(("task", "n"), [("stsb/cosine", "9"), ("mr", "10")]))
    task          n
    stsb/cosine   9
    mr           10
    """
    lines = [columns, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    padded = (
        [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def score_text(value: float, *, percent: bool, sign: bool = False) -> str:
    """Returns a score as people read it: percents have two digits, others four.

    >>> score_text(71.25, percent=True), score_text(0.5, percent=False, sign=True)
    ('71.25', '+0.5000')
    """
    return f"{value:{'+' if sign else ''}.{2 if percent else 4}f}"
