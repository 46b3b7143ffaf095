"""What is written of a published text: entities as characters, white space folded.

The rules look at texts as published; cleaning comes after them, and few texts need any.
"""

import html
import re
from html.entities import html5

import polars as pl

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_HAS_ENTITY = r"&#?\w+;"
_WHITE_SPACE = r"[\t-\r\x{85}\x{200B}\p{Z}]+"
_NEEDS_FOLDING = r"[\t-\r\x{85}\x{200B}]|[^ \P{Z}]|  |^ | $"
"""White space other than one space between words."""


def cleaned(texts: pl.Series) -> pl.Series:
    r"""(N,) texts as they are written, null where that is as they are published.

    >>> cleaned(pl.Series(["as it is", "R&amp;D", " two  words\n"])).to_list()
    [None, 'R&D', 'two words']
    """
    needed = (texts.str.contains(_NEEDS_FOLDING) | _has_entity(texts)).fill_null(False)
    rows = needed.arg_true()
    clean = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    if not len(rows):
        return clean
    folded = unescape(texts.gather(rows)).str.replace_all(_WHITE_SPACE, " ").str.strip_chars(" ")
    return clean.scatter(rows, folded)


def unescape(texts: pl.Series) -> pl.Series:
    """HTML entities (`&gt;`, `&amp;`, `&#x200B;`) as the characters that they stand for, once.

    Only what ends in a semicolon and is known is an entity. A number of no character (half of a
    surrogate pair, NUL, beyond Unicode) becomes U+FFFD.

    >>> unescape(pl.Series(["a &gt; b &amp;amp; c", "R&D;", "?a&copy=1"])).to_list()
    ['a > b &amp; c', 'R&D;', '?a&copy=1']
    """
    rows = _has_entity(texts).arg_true()
    if not len(rows):
        return texts
    mended = [_ENTITY.sub(_character, text) for text in texts.gather(rows)]
    return texts.clone().scatter(rows, pl.Series(mended, dtype=pl.String))


def _has_entity(texts: pl.Series) -> pl.Series:
    possible = texts.str.contains("&", literal=True)
    rows = possible.arg_true()
    if not len(rows):
        return possible
    return possible.scatter(rows, texts.gather(rows).str.contains(_HAS_ENTITY))


def _character(match: re.Match[str]) -> str:
    entity = match.group()
    # by name only as a whole: html.unescape would find "not" in "&notice;"
    return html.unescape(entity) if entity[1] == "#" else html5.get(entity[1:], entity)
