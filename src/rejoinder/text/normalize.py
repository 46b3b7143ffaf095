"""Normalisation and tokens of one sentence, in plain Python: the first steps from text to ids.

The version of the rules, `RULES`, is stored with every model. The rules are defined for the code
points assigned in Unicode `UNICODE`; every later version of Python normalises those alike.
`text.columns` has the same rules for columns of Polars, `native._words` those for tokens in C.

Letters without their marks: text rules 2, for models of several languages.

Arabic is written with or without vowel signs and hamza, Spanish with or without accents, and
capital I is two letters in Turkish. Folded, the spellings of a word share a row.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import category

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import replace_surrogates
from rejoinder.text.unicode_14 import DIGIT, LETTER, SPACE, runs

RULES = 1
FOLDED = 2
"""The version of the rules with letters that lost their marks first (`text.marks`)."""

PATTERN = r"[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|\p{Nd}+|[^\s\p{L}\p{M}\p{Nd}]"
"""Matches a token of normalised text, for engines that know Unicode's categories. White space only
separates tokens."""

QUOTES = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'}
"""Quotation marks and apostrophes, and the straight ones that they become."""
_QUOTES = str.maketrans(QUOTES)
_ACCENTS = str.maketrans({"\u00b4": "'", "\u2032": "'"})
"""Signs that are typed for an apostrophe, and that NFKC would part from their word."""
_ASCII = re.compile(r"[a-z]+(?:'[a-z]+)*|[0-9]+|[^ \t-\ra-z0-9]")


def as_strings(sentences: Iterable[str]) -> list[str]:
    r"""Returns sentences as a list of strings. Halves of surrogate pairs become U+FFFD.

    >>> as_strings(["Hi.", "a\udc00"])
    ['Hi.', 'a\ufffd']

    Raises:
        InputError: an element is not a string. The message names its index.
    """
    items = list(sentences)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(
                f"sentence {index} is a {type(item).__name__}; sentences must be strings."
            )
    joined = "".join(items)
    if joined.isascii():
        return items
    try:
        joined.encode()
    except UnicodeEncodeError:
        return [replace_surrogates(item) for item in items]
    return items


def normalize_text(text: str) -> str:
    r"""Normalises a sentence: NFKC, straight quotes, lower case.

    >>> normalize_text("It\u2019s \uff26\uff35\uff2c\uff2c"), normalize_text("\ufb01ne")
    ("it's full", 'fine')
    """
    if not text.isascii():  # NFKC leaves ASCII as it is, and nearly all conversation is ASCII
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return text.lower()


def normalize_cased(text: str) -> str:
    r"""Normalises a sentence as text rules 5 do, but for ASCII capitals, which stay.

    Accents that stand for apostrophes become those.

    >>> normalize_cased("I can\u00b4t see \u00c9ric"), normalize_cased("It\u2019s Loach")
    ("I can't see \xe9ric", "It's Loach")
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text.translate(_ACCENTS)).translate(_QUOTES)
    if text.isascii():
        return text
    small = text.lower()
    if len(small) != len(text):
        return small
    return "".join(one if one.isascii() else other for one, other in zip(text, small, strict=True))


def same_words(first: str, second: str) -> bool:
    """Returns whether two texts are the same tokens in another order.

    >>> same_words("The dog bit the man.", "The man bit the dog."), same_words("Hi!", "hi !")
    (True, False)
    """
    one, other = tokens_of(first), tokens_of(second)
    return one != other and sorted(one) == sorted(other)


def tokens_of(text: str) -> list[str]:
    """Returns the tokens of a sentence.

    >>> tokens_of("Don't panic, it's 42!")
    ["don't", 'panic', ',', "it's", '42', '!']
    """
    text = normalize_text(text)
    return _pattern(text).findall(text)


@cache
def is_punctuation(token: str) -> bool:
    """Returns whether a token is a character of punctuation."""
    return len(token) == 1 and unicodedata.category(token)[0] == "P"


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Finds the tokens of a sentence that is normalised already, with their places."""
    return _pattern(text).finditer(text)


def _pattern(text: str) -> re.Pattern[str]:
    """Returns the pattern of a token of a normalised sentence."""
    return _ASCII if text.isascii() else _unicode()


@cache
def _unicode() -> re.Pattern[str]:
    """Returns the pattern of a token of any normalised text."""
    letters, digits, spaces = (
        "".join(f"{chr(low)}-{chr(high - 1)}" for low, high in runs(kind))
        for kind in (LETTER, DIGIT, SPACE)
    )
    return re.compile(
        f"[{letters}]+(?:'[{letters}]+)*|[{digits}]+|[^{spaces}{letters}{digits}]",
    )


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
