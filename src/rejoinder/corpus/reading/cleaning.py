"""Cleaning of published texts: HTML entities become characters, white space is folded.

The rules look at texts as published. Cleaning comes after them, and few texts need any.
"""

import html
import re
from html.entities import html5

import polars as pl

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_HAS_ENTITY = r"&#?\w+;"
_WHITE_SPACE = r"[\t-\r\x{85}\x{200B}\p{Z}]+"
_NEEDS_FOLDING = r"[\t-\r\x{85}\x{200B}]|[^ \P{Z}]|  |^ | $"
"""Matches white space other than single spaces between words."""


def cleaned(texts: pl.Series) -> pl.Series:
    r"""Returns (N,) cleaned texts, null where cleaning changes nothing.

    >>> cleaned(pl.Series(["as it is", "R&amp;D", " two  words\n"])).to_list()
    [None, 'R&D', 'two words']
    """
    needed = (texts.str.contains(_NEEDS_FOLDING) | _has_entity(texts)).fill_null(False)
    indices = needed.arg_true()
    clean = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    if not len(indices):
        return clean
    folded = unescape(texts.gather(indices)).str.replace_all(_WHITE_SPACE, " ").str.strip_chars(" ")
    return clean.scatter(indices, folded)


def unescape(texts: pl.Series) -> pl.Series:
    """Replaces HTML entities (`&gt;`, `&amp;`, `&#x200B;`) by their characters, once.

    An entity must end in a semicolon, and its name must be known. A number that is no character
    (half of a surrogate pair, NUL, beyond Unicode) becomes U+FFFD.

    >>> unescape(pl.Series(["a &gt; b &amp;amp; c", "R&D;", "?a&copy=1"])).to_list()
    ['a > b &amp; c', 'R&D;', '?a&copy=1']
    """
    indices = _has_entity(texts).arg_true()
    if not len(indices):
        return texts
    replaced = [_ENTITY.sub(_character, text) for text in texts.gather(indices)]
    return texts.clone().scatter(indices, pl.Series(replaced, dtype=pl.String))


def _has_entity(texts: pl.Series) -> pl.Series:
    possible = texts.str.contains("&", literal=True)
    indices = possible.arg_true()
    if not len(indices):
        return possible
    return possible.scatter(indices, texts.gather(indices).str.contains(_HAS_ENTITY))


def _character(match: re.Match[str]) -> str:
    entity = match.group()
    # names count only as a whole: html.unescape would find "not" in "&notice;"
    return html.unescape(entity) if entity[1] == "#" else html5.get(entity[1:], entity)
