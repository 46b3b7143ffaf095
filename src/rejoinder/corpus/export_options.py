"""Options for reading exports: which messages are left out, masked or near duplicates.

Masking replaces addresses, numbers and keys in messages, so that no model or index holds them.

It finds anything with a fixed form: mail addresses, also as list archives write them (`ann at
a.example`), phone numbers, IBANs, payment cards, IP addresses, service keys, user names and
passwords in addresses. It can't find names of people, places or customers, or plain-word passwords.

Near duplicates of earlier messages are found by the MinHash of `rensa`.

`rensa` is under MIT and has wheels for every Python that we support. Its own objects, 1.7 kB per
text, are not kept here.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, require
from rejoinder.text.languages import is_in_others


@dataclass(frozen=True)
class ExportOptions:
    """Options for the messages of exports."""

    pair: str | None = None
    """`links`: use the reply links of the export; `adjacent`: or else the message before it by
    another author; `model`: outside threads, the links of a linker. None: `model` for exports with
    few or no reply links; `adjacent` without a linker."""
    min_confidence: float = 0.3
    """Lowest probability of a linker's link. Many fairly likely replies train better encoders than
    a few certain replies (notebook/links.md)."""
    within: float = 600.0
    """Most seconds between a message outside threads and the message before it that it answers."""
    include_private: bool = False
    mask: str | None = None
    """`pii`: see `masks`. None masks nothing."""
    min_authors: int | None = None
    """Number of authors that must have used a word before a model may know it. None: 5, or 1 for
    formats that are public."""
    context: int | None = None
    """Number of turns before a message to keep in its pairs. None: no such column."""
    languages: tuple[str, ...] = ()
    """Codes of the languages whose messages are kept. Empty: all."""
    dedupe: bool = False
    """Whether near duplicates of earlier messages are left out."""

    def __post_init__(self) -> None:
        if self.pair not in (None, "links", "adjacent", "model"):
            raise InputError(f"`pair` {self.pair!r}: links, adjacent or model.")
        if not 0 <= self.min_confidence <= 1:
            raise InputError(f"`min_confidence` {self.min_confidence}: a number from 0 to 1.")
        if self.mask not in (None, "pii"):
            raise InputError(f"`mask` {self.mask!r}: pii.")
        if self.context is not None and self.context < 1:
            raise InputError(f"`context` {self.context}: 1 turn or more.")

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that decide the content of the pairs; newer options only if used."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _LATER or value != getattr(ExportOptions, name)
        }


OPTIONS = (
    "`pair`", "`min_confidence`", "`within`", "`context`", "`language`", "`dedupe`",
    "`include_private`", "`mask`", "`min_authors`",
)  # fmt: skip
_LATER = ("min_confidence", "context", "languages", "dedupe")

REASONS = {
    "system": "written by the program itself",
    "bot": "written by a bot",
    "private": "internal notes, direct messages; `include_private=True` keeps them",
    "empty": "no text: a picture, a file, a deleted message",
    "language": "in another language than `language`",
    "double": "nearly the same as an earlier message; see `dedupe`",
}
"""Reasons to leave out a message, in the order of the checks."""


class Texts:
    """Decides which messages are left out because of their text."""

    def __init__(self, options: ExportOptions) -> None:
        """Prepares the checks that the options ask for.

        Raises:
            InputError: a language is unknown.
            MissingExtraError: a package is not installed.
        """
        self._mask = options.mask
        self._reasons: dict[str, Callable[[str], bool]] = {}
        if options.languages:
            self._reasons["language"] = is_in_others(options.languages)
        if options.dedupe:
            self._reasons["double"] = Doubles()

    def masked(self, text: str) -> str:
        """Returns a text as it is written to pairs, masked if the options say so."""
        return mask_pii(text) if self._mask else text

    def why_not(self, text: str) -> str | None:
        """Returns the reason to leave out a text, None to keep it."""
        return next((why for why, is_so in self._reasons.items() if is_so(text)), None)


_DIGITS = re.compile(r"\d")
_CARD_DIGITS = range(13, 20)
_PHONE_DIGITS = range(8, 16)
_LONGEST_IBAN = 34


def mask_pii(text: str) -> str:
    """Replaces personal data in a text by its kind, such as `[email]`.

    >>> mask_pii("Write to ann@example.org or call +44 20 7946 0958, order 20240301")
    'Write to [email] or call [phone], order 20240301'
    """
    for pattern, replace in _MASKS:
        text = pattern.sub(replace, text)
    return text


def find_pii(text: str) -> list[tuple[str, str]]:
    """Returns the kind and text of everything that `mask_pii` would mask.

    >>> find_pii("Write to ann@example.org or call +44 20 7946 0958, order 20240301")
    [('email', 'ann@example.org'), ('phone', '+44 20 7946 0958')]
    """
    found: list[tuple[str, str]] = []

    def masked(replace: str | Callable[[re.Match[str]], str], match: re.Match[str]) -> str:
        mask = match.expand(replace) if isinstance(replace, str) else replace(match)
        if mask != match[0]:
            before, _, kind = mask.rpartition("[")
            found.append((kind.removesuffix("]"), match[0].removeprefix(before)))
        return mask

    for pattern, replace in _MASKS:
        text = pattern.sub(partial(masked, replace), text)
    return found


def _card(match: re.Match[str]) -> str:
    """Masks a number that passes the checksum of payment cards (Luhn, ISO/IEC 7812-1)."""
    digits = _DIGITS.findall(match[0])
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    passes = sum(number // 10 + number % 10 for number in doubled) % 10 == 0
    is_card = passes and len(digits) in _CARD_DIGITS and len({*digits}) > 1
    return "[card]" if is_card else match[0]


def _iban(match: re.Match[str]) -> str:
    """Masks a number that passes the checksum of ISO 13616: it is 1 modulo 97."""
    plain = match[0].replace(" ", "").upper()
    moved = plain[4:] + plain[:4]
    number = int("".join(str(int(character, 36)) for character in moved))
    return "[iban]" if number % 97 == 1 and len(plain) <= _LONGEST_IBAN else match[0]


def _phone(match: re.Match[str]) -> str:
    count = len(_DIGITS.findall(match[0]))
    return "[phone]" if count in _PHONE_DIGITS else match[0]


def _address(match: re.Match[str]) -> str:
    return "[ip]" if all(int(part) < 256 for part in match[0].split(".")) else match[0]


_HOST = r"(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}"
_MASKS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)", re.DOTALL),
        "[key]",
    ),
    (re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"), "[login]"),
    (re.compile(r"[\w.+%-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}"), "[email]"),
    (
        # "ann at example.org" alone in a line or brackets, or if the name can't be a word
        re.compile(
            rf"(?m)(?<![\w#.+-])(?:[^\W\d_][\w.+-]{{0,63}} ?[\[(]at[\])] ?{_HOST}"
            rf"|(?:(?<=<)|^[ \t]*)[^\W\d_][\w.+-]{{0,63}} at {_HOST}(?=>|[ \t]*$)"
            rf"|[^\W\d_][\w.+-]{{0,62}}[\d_.][\w.+-]{{0,62}}\w at {_HOST}(?![\w/]))",
            re.IGNORECASE,
        ),
        "[email]",
    ),
    (
        # a token of JWT, which may begin within words
        re.compile(r"(?<![\w-])((?>[\w-]*?\b(?=eyJ)))eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*\b"),
        r"\1[key]",
    ),
    (
        re.compile(
            r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}"
            r"|xox[abprs]-[\w-]{10,}|[sr]k_(?:live|test)_\w{16,}|sk-[\w-]{20,}|AIza[\w-]{35}"
            r"|[0-9a-fA-F]{32,})\b"
        ),
        "[key]",
    ),
    (re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b"), _iban),
    (
        re.compile(
            r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{5})"
            r"(?![\w-])"
        ),
        _card,
    ),
    (re.compile(r"(?<![\w.])(?<![^\W\d_]-)(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)"), _address),
    (
        re.compile(
            r"(?<![\w:])(?=[0-9a-fA-F:]{0,40}[0-9a-fA-F]{3})(?:[0-9a-fA-F]{1,4}:){4,7}"
            r"(?::?[0-9a-fA-F]{1,4}){1,3}(?![\w:])"
        ),
        "[ip]",
    ),
    (
        re.compile(
            r"(?<![\w.,/-])(?:\+\d{1,3}[ ./-]?(?:\(\d{1,4}\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}"
            r"|\(\d{2,5}\)[ ./-]?\d(?:[ ./-]?\d){4,9}"
            r"|0\d{1,4}(?:[ /]|- ?)\d{2,4}(?:[ /-]?\d{2,4}){1,3}|0\d(?:\.\d\d){4}"
            r"|\d{3}[ .-]\d{3}[ .-]\d{4})(?![\w/-]|[.,]\d)"
        ),
        _phone,
    ),
)
"""Patterns to mask, in order: later patterns see the text that earlier patterns left."""


_FEWEST_WORDS = 5
"""Shorter messages always stay: many questions have the answer "yes"."""
_SHARE = 0.8
_HASHES, _BANDS, _SEED = 64, 16, 42
_FIRST, _MOST = 1 << 14, 1 << 21
"""Initial and largest number of remembered texts."""
_NONE = -1
_MIXER = np.uint32(2_654_435_769)
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
"""Letters of Thai, Lao, Japanese and Chinese, which don't separate words."""
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_Sketches = NDArray[np.uint8]


class Doubles:
    """Detects near duplicates among the last two million texts, in 128 bytes per text.

    Two texts are doubles if they share 80 % of their words and pairs of neighbouring words, as
    MinHash estimates it; case and punctuation don't count.

    >>> is_double = Doubles()
    >>> said = ["Read the rules of this channel!", "Yes", "read the rules of this channel", "Yes"]
    >>> [is_double(text) for text in said]
    [False, False, True, False]
    """

    def __init__(self) -> None:
        """Begins with no texts.

        Raises:
            MissingExtraError: the library is not installed.
        """
        require("filter", "rensa")
        from rensa import RMinHash

        self._sketch = RMinHash
        self._count = 0
        self._make_room(np.empty((0, _HASHES), np.uint8), _FIRST)

    def __call__(self, text: str) -> bool:
        """Returns whether a text nearly repeats an earlier text. If not, remembers it."""
        words = _WORDS.findall(text.lower())
        if len(words) < _FEWEST_WORDS:
            return False
        found = self._sketch(_HASHES, _SEED)
        found.update([*words, *map(" ".join, pairwise(words))])
        # a byte of each hash suffices: one in 256 agrees by chance
        sketch = np.array(found.digest(), np.uint32).astype(np.uint8)
        places = self._places(sketch)
        others = self._latest[places]
        shares = (self._sketches[others[others != _NONE]] == sketch).mean(axis=1)
        if (shares >= _SHARE).any():
            return True
        if self._count == len(self._sketches) < _MOST:
            self._make_room(self._sketches, 2 * self._count)
            places = self._places(sketch)
        row = self._count % len(self._sketches)
        self._sketches[row] = sketch
        self._latest[places] = row
        self._count += 1
        return False

    def _make_room(self, sketches: _Sketches, room: int) -> None:
        self._sketches = np.zeros((room, _HASHES), np.uint8)
        self._sketches[: len(sketches)] = sketches
        self._latest = np.full(_BANDS * room, _NONE, np.int32)
        """The last text in each place. Similar texts share some of their 16 places; other texts may
        take over a place by chance."""
        for first in range(0, len(sketches), _FIRST):
            places = self._places(sketches[first : first + _FIRST])
            self._latest[places] = np.arange(first, first + len(places))[:, None]

    def _places(self, sketches: _Sketches) -> NDArray[np.intp]:
        """Returns the (..., 16) places of (..., 64) sketches, one per four bytes."""
        room = len(self._sketches)
        mixed = sketches.view(np.uint32) * _MIXER >> np.uint32(33 - room.bit_length())
        return mixed.astype(np.intp) + room * np.arange(_BANDS)
