"""Normalises and tokenizes a sentence in plain Python: the first steps from text to ids.

The version of the rules, `RULES`, is stored with every model. The rules are defined for the code
points assigned in Unicode `UNICODE`; every later version of Python normalises these alike.
`text.columns` has the same rules for Polars columns, `native._words` the token rules in C.

Text rules 2, for models of several languages, also remove the marks of letters (folding).

Arabic is written with or without vowel signs and hamza, Spanish with or without accents, and
capital I is two letters in Turkish. After folding, the spellings of a word share a row.

The text rules are defined on classes of the code points of Unicode 14.0, listed here.

A class is written as runs: the distance from the previous run and the length of the run, both in
base 36. `tests/text/test_normalize.py` compares the runs with Python 3.11, which has Unicode 14.0.
Classes are part of the model format (text rules 1): they must never change.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from unicodedata import category

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import replace_surrogates

RULES = 1
FOLDED = 2
"""The version of the rules that first removes the marks of letters (`fold_marks`)."""

PATTERN = r"[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|\p{Nd}+|[^\s\p{L}\p{M}\p{Nd}]"
"""Matches a token of normalised text, for regex engines with Unicode categories. White space only
separates tokens."""

QUOTES = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'}
"""Quotation marks and apostrophes, and the straight marks that replace them."""
_ACCENTS = {"\u00b4": "'", "\u2032": "'"}
"""Signs that people type as an apostrophe, but that NFKC would split from the word."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
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
    if not text.isascii():  # NFKC does not change ASCII, and nearly all conversation is ASCII
        text = _replaced(unicodedata.normalize("NFKC", text), QUOTES)
    return text.lower()


def _replaced(text: str, signs: Mapping[str, str]) -> str:
    """Replaces signs of a text, ten times as fast as `str.translate`."""
    for sign, other in signs.items():
        text = text.replace(sign, other)
    return text


def normalize_cased(text: str) -> str:
    r"""Normalises a sentence by text rules 5, but keeps ASCII capitals.

    Accents typed as apostrophes become apostrophes.

    >>> normalize_cased("I can\u00b4t see \u00c9ric"), normalize_cased("It\u2019s Loach")
    ("I can't see \xe9ric", "It's Loach")
    """
    if text.isascii():
        return text
    text = _replaced(unicodedata.normalize("NFKC", _replaced(text, _ACCENTS)), QUOTES)
    if "\u0130" in text:  # its small letter is two characters
        return text.lower()
    if "\u03a3" in text:  # the small letter of a sigma depends on what is around it
        small = text.lower()
        return "".join(
            one if one.isascii() else other for one, other in zip(text, small, strict=True)
        )
    return _BEYOND_ASCII.sub(lambda found: found[0].lower(), text)


def same_words(first: str, second: str) -> bool:
    """Returns whether two texts have the same tokens in another order.

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
    """Returns whether a token is a punctuation character."""
    return len(token) == 1 and unicodedata.category(token)[0] == "P"


def words_of(text: str) -> list[str]:
    """Returns the words of a text without punctuation.

    >>> words_of("C++ isn't hard, is it?")
    ['c', '+', '+', "isn't", 'hard', 'is', 'it']
    """
    return _words_in(normalize_text(text))


def _words_in(text: str) -> list[str]:
    """Returns the words of an already normalised text."""
    return [token for token in _pattern(text).findall(text) if not is_punctuation(token)]


def saying(words: Sequence[str]) -> Callable[[str], bool]:
    """Returns a function that tells whether a text contains words (see `words_of`) in a row.

    >>> [*map(saying(["night", "train"]), ["By night, train by train", "Night trains"])]
    [True, False]
    """
    wanted = f" {' '.join(words)} "
    ascii_only = re.compile(_GAP.join(map(_as_written, words)))

    def is_said(text: str) -> bool:
        text = normalize_text(text)
        if text.isascii():  # nearly always, and ten times as fast
            return ascii_only.search(text) is not None
        return wanted in f" {' '.join(_words_in(text))} "

    return is_said


_GAP = (
    f"[{re.escape(''.join(one for one in map(chr, range(128)) if category(one)[0] == 'P'))} \t-\r]*"
)
"""Matches the text between two words of a normalised ASCII text."""


def _as_written(word: str) -> str:
    """Returns a pattern that matches a word, but not as part of another word."""
    itself = re.escape(word)
    if word[0].isalpha():
        return f"{itself}(?<![a-z]{itself})(?<![a-z]'{itself})(?!'?[a-z])"
    return f"{itself}(?<![0-9]{itself})(?![0-9])" if word.isdigit() else itself


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Finds the tokens of an already normalised sentence, with their positions."""
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


_LETTERS = {"\u0131": "i", "\u0649": "\u064a", "\u0629": "\u0647", "\u0640": ""}
"""Dotless i, alef maksura and teh marbuta become the letters they are confused with; the tatweel,
which only stretches a word, is removed."""


Located = tuple[str, int | None, int | None]
"""A token with its start and stop in the text as given."""


def located_tokens(text: str, normalize: Callable[[str], str] = normalize_text) -> list[Located]:
    """Returns the tokens of a text by text rules 1, with their positions in the text.

    Pass the `normalize` of a model for other rules.

    >>> located_tokens("Don\u2019t  panic \ufb01ne!")
    [("don't", 0, 5), ('panic', 7, 12), ('fine', 13, 16), ('!', 16, 17)]
    """
    plain = normalize(text)
    return located(text, plain, [match.span() for match in find_tokens(plain)], normalize)


def located(
    text: str, plain: str, spans: Iterable[tuple[int, int]], normalize: Callable[[str], str]
) -> list[Located]:
    """Returns a stretch of `plain`, a normalised text, with its start and stop in the original.

    Start and stop are None if unknown, because normalising joined or moved characters.
    """
    places = _places(text, plain, normalize)
    if places is None:
        return [(plain[low:high], None, None) for low, high in spans]
    return [
        (plain[low:high], places[low], places[max(low, high - 1)] + (high > low))
        for low, high in spans
    ]


def _places(text: str, plain: str, normalize: Callable[[str], str]) -> list[int] | None:
    """Returns, for each character of `plain`, the index in `text` that it comes from.

    Returns None if normalising joined or moved characters, so that the indices are unknown.
    """
    if text.isascii():
        return list(range(len(text)))
    parts = [normalize(character) for character in text]
    # a capital sigma becomes another letter at the end of a word
    if "".join(parts).replace("ς", "σ") != plain.replace("ς", "σ"):
        return None
    return [index for index, part in enumerate(parts) for _ in part]


def fold_marks(text: str) -> str:
    """Returns a text without the marks of its letters: accents, vowel signs, hamza.

    >>> fold_marks("\u00bfQu\u00e9 a\u00f1o, \u0130stanbul \u0131\u015f\u0131k?")
    '\u00bfQue ano, Istanbul isik?'
    """
    if text.isascii():
        return text
    return _replaced(_marks().sub("", unicodedata.normalize("NFKD", text)), _LETTERS)


@cache
def _marks() -> re.Pattern[str]:
    """Returns the pattern of combining marks."""
    marks = (chr(code) for code in range(0x300, 0x1E95B) if category(chr(code)) == "Mn")
    return re.compile(f"[{''.join(marks)}]+")


def fold_all(texts: Iterable[str]) -> list[str]:
    """Returns texts without the marks of their letters."""
    return [fold_marks(text) for text in texts]


UNICODE = "14.0"

OTHER, LETTER, DIGIT, SPACE = range(4)
"""Classes: LETTER has letters and marks (L, M), DIGIT decimal digits (Nd), SPACE white space."""

_CODE_POINTS = 0x110000
_RUNS = {
    LETTER: (
        "1t q 6 q 1b 1 a 1 4 1 5 n 1 v 1 cq 4 c e 5 7 1 1 1 h 39 1 2 2 4 1 1 6 1 1 3 1 1 1 k "
        "1 2b 1 3v 1 4t 1 12 2 1 6 15 8 19 1 1 1 2 1 2 1 1 8 r 4 4 t b 5 1s e 2u 1 8 2 a 1 6 "
        "a 3 2 1 g 1n 2 2t o 18 4 1 2 1 2 1a i s 4 b 5 o 1 6 9 22 1 3l d j 1 8 2 2 2 m 1 7 1 "
        "1 3 4 2 9 2 2 2 4 8 1 4 2 1 5 c 2 a 1 1 1 2 3 1 6 4 2 2 m 1 7 1 2 1 2 1 2 2 1 1 5 4 "
        "2 2 3 3 1 7 4 1 1 h 6 b 3 1 9 1 3 1 m 1 7 1 2 1 5 2 a 1 3 1 3 2 1 f 4 l 7 1 3 1 8 2 "
        "2 2 m 1 7 1 2 1 5 2 9 2 2 2 3 7 3 4 2 1 5 d 1 g 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 "
        "c 4 5 3 3 1 4 2 1 6 1 14 d 1 3 1 n 1 g 2 9 1 3 1 4 7 2 1 3 2 1 2 4 s 4 1 8 1 3 1 n 1 "
        "a 1 5 2 9 1 3 1 4 7 2 6 2 1 4 d 2 d d 1 3 1 1f 1 3 1 5 5 4 7 5 m 6 1 3 1 i 3 o 1 9 1 "
        "1 2 7 3 1 4 6 1 1 1 8 i 2 d 1m 5 f 1e 2 1 1 1 5 1 o 1 1 1 n 2 5 1 1 1 6 e 4 w 1 n 2 "
        "r 1 1 1 1 1 4 a 1 10 4 k 1 i 1 10 9 1 1l 1s g 1s a 4 2 12 1 1 5 1 2 17 1 99 1 4 2 7 "
        "1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1 1l 1 4 2 1v 2 3 w g g 2e 2 6 3 h8 2 h 1 q "
        "5 23 6 8 7 m 9 m b k c d 1 3 1 2 c 2c 3 1 4 2 19 3 1 1 g 2h 7 17 5 1y a v 1 c 4 c k "
        "u 2 5 b 18 4 q 1i s 4 1r 1 t 2 1 13 1 8 v 1d 25 u 9 c 1c a 1m c 1k l 3 a 10 2 9 7 17 "
        "2 3 g 3 1 13 5 eu 2 6 2 12 2 6 2 8 1 1 1 1 1 1 1 v 2 1h 1 7 1 1 3 3 1 7 3 4 2 6 4 d "
        "5 3 1 7 38 1 d 1 g d 1f x h 1 4 1 2 a 1 1 3 5 6 1 1 1 1 1 1 4 1 b 2 4 5 5 4 1 1g 2 "
        "22j 6d 6 9 c 12 1 1 5 1 2 1k 7 1 f o 9 7 1 7 1 7 1 7 1 7 1 7 1 7 1 7 1 w 1b 1 d1 2 z "
        "6 1 5 5 2 4 2e 2 2 2 3 1 2i 1 4 5 17 1 2m h w 1c g e8 534 1s h3h 1v 1a 2 7h 3 g a 2 "
        "k 1f 1 a 1 2v a 2 11 9 2 2v 2 1s 5 2 1 1 1 5 o 1i 4 1 j 1g c 1y q o 3 1 1 3 a 10 2 "
        "10 c t 3 1t e 1 g g a 5 1 1j 9 e i n 3 21 o 3 2 g 2 5 a 6 2 6 2 6 9 7 1 7 1 17 1 e 6 "
        "3f 1 2 i 8mc c n 4 1d 6is a6 2 2y 12 7 c 5 5 c 1 d 1 5 1 1 1 2 1 2 1 30 x a3 i 1s 2 "
        "1i 14 c 4 g g g 1s 5 1 3r 10 q 6 q b 2h 3 6 2 6 2 6 2 3 z c 1 q 1 j 1 2 1 f 2 e y 3f "
        "76 1 3m t 3 1d f 1 v w d k 1 8 6 17 5 u 2 10 4 8 1c 4e i 10 4 10 4 14 8 1g c b 1 f 1 "
        "7 1 2 1 b 1 f 1 7 1 2 1v 8n 9 m a 8 o 6 1 16 1 9 1x 6 2 1 1 18 1 2 3 1 2 n a n 9 v "
        "1t j 1 2 a m a q 1y 1k 6 2 1s 4 1 2 5 8 1 3 1 t 2 3 4 1 w t 3 t z 8 1 u p 1i a m a j "
        "d i 32 21 1j 1f d 1f d 14 9k 16 1 2 3 2 26 t a 1 8 x v m 16 l r n 9 1z 15 6 9 1o 7 1 "
        "d p n 1h f 4 8 10 2 1 9 1x 4 4 1 2 a 1 1 1 z i 1 11 6 1 1t 7 1 1 1 4 1 f 1 a 7 1n l "
        "4 1 8 2 2 2 m 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 3 5 3v 23 j 4 u 1y 1 1 54 1i 2 "
        "9 n 6 y 1t 3 1 1n 1l 1z r 2 f k 7 55 1n 2t 1s v 8 2 1 2 8 1 2 1 u 1 2 2 9 2k 8 2 1a "
        "2 8 1 2 r 1r 8 1 8 22 3 1 i 21 7b 9 1 19 1 9 1d u 2 m 1 e 21 7 1 2 1 18 3 1 1 2 1 9 "
        "o 6 1 2 1 11 1 2 1 6 93 n 55 1 27 pm 6e 5g 218 2p f tr 34h g7 6nt ft 7 v h 27 h u 2 "
        "5 b 1j 9 4 v l 5 j j4 1s 3k 23 4 1l 7 h 1s 2 1 2 b 2 e 4qg 8 ye 16 9 6w7 4 1 7 1 2 1 "
        "83 19 3 h 4 8 b0 1s4 2z 5 d 3 9 7 a 3 2 3mp 1a 2 n f2 5 3 6 8 8 2 7 u 4 44 3 cb 2d 1 "
        "1z 1 2 2 1 2 2 2 4 1 c 1 1 1 7 1 1t 1 4 2 8 1 7 1 s 1 4 1 5 1 1 3 7 1 9g 2 p 1 p 1 v "
        "1 p 1 v 1 p 1 v 1 p 1 v 1 p 1 8 fo 1j 4 1e 8 1 e 1 m 5 1 f uo v 69 7 1 h 2 7 1 2 1 5 "
        "5x 19 3 e g 1 8x v h 1c z4 7 1 4 1 2 1 f 1 5h b 7 15 24 xg 4 1 r 1 2 1 1 2 1 1 a 1 4 "
        "1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 1 4 1 4 1 1 "
        "1 a 1 h 5 3 1 5 1 h 3es wyo w 37d 7 66 2 4g2 e 5rl 2e7 f2 15u 3t7 fcmt 6o"
    ),
    DIGIT: (
        "1c a 17q a 3q a 5i a bg a 3a a 3a a 3a a 3a a 3a a 3a a 3a a 3a a 3a a 2o a 3a a 1y "
        "a 7q a 1y a 1fq a 12 a 8c a 3k a 4m a 6 a 52 a 2e a 3q a 6 a r7q a iu a 12 a 5i a m "
        "a 2e a ba a geu a 13a a 1om a mk a 3k a 1o a 40 a 7q a 9i a 3a a ae a 2u a 2u a bq a "
        "2u a l2 a 6u a 1y a f5i a 2e a 3q a lf8 1e 1ts a bq a 192 a 3o6 a"
    ),
    SPACE: ("9 5 i 1 2s 1 q 1 4bj 1 1vj b t 2 5 1 1b 1 334 1"),
}


def runs(kind: int) -> list[tuple[int, int]]:
    """Returns the runs of a class: first code point of each (inclusive), and stop (exclusive).

    >>> runs(SPACE)[:2]
    [(9, 14), (32, 33)]
    """
    borders = list(accumulate(int(number, 36) for number in _RUNS[kind].split()))
    return list(zip(borders[::2], borders[1::2], strict=True))


@cache
def classes() -> bytes:
    """Returns the class of each code point, as bytes.

    >>> [classes()[ord(letter)] for letter in "a7 ."] == [LETTER, DIGIT, SPACE, OTHER]
    True
    """
    table = bytearray(_CODE_POINTS)
    for kind in _RUNS:
        for low, high in runs(kind):
            table[low:high] = bytes([kind]) * (high - low)
    return bytes(table)
