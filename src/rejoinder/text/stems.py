"""Stems of words, so that a search for "running" finds "runs": Snowball (Porter 2001).

PyStemmer is the C code of Snowball's own project.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain

from rejoinder.errors import ModelError
from rejoinder.text.normalize import normalize_text

_TYPICAL = {
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
    counts = {name: sum(words[one] for one in few.split()) for name, few in _TYPICAL.items()}
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
