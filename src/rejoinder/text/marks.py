"""Letters without their marks: text rules 2, for models of several languages.

Arabic is written with or without vowel signs and hamza, Spanish with or without accents, and
capital I is two letters in Turkish. Folded, the spellings of a word share a row.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from unicodedata import category

_LETTERS = str.maketrans({"\u0131": "i", "\u0649": "\u064a", "\u0629": "\u0647", "\u0640": None})
"""Dotless i, alef maksura and teh marbuta become the letters that they are mixed up with; the
tatweel, which only stretches a word, goes."""


def fold_marks(text: str) -> str:
    """Returns a text without the marks of its letters: accents, vowel signs, hamza.

    >>> fold_marks("\u00bfQu\u00e9 a\u00f1o, \u0130stanbul \u0131\u015f\u0131k?")
    '\u00bfQue ano, Istanbul isik?'
    """
    if text.isascii():
        return text
    return _marks().sub("", unicodedata.normalize("NFKD", text)).translate(_LETTERS)


@cache
def _marks() -> re.Pattern[str]:
    """Returns the pattern of marks that stand on a letter and take no room."""
    marks = (chr(code) for code in range(0x300, 0x1E95B) if category(chr(code)) == "Mn")
    return re.compile(f"[{''.join(marks)}]+")


def fold_all(texts: Iterable[str]) -> list[str]:
    """Returns texts without the marks of their letters."""
    return [fold_marks(text) for text in texts]
