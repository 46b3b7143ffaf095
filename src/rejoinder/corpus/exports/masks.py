"""Replaces addresses, numbers and keys in messages, so that no model or index holds them.

It finds what has a form: mail addresses, also as archives of lists write them (`ann at a.example`),
phone numbers, IBANs, payment cards, IP addresses, keys of services, user names and passwords in
addresses. It can't find names of people, places or customers, nor passwords that are plain words.
"""

import re
from collections.abc import Callable

_DIGITS = re.compile(r"\d")
_CARD_DIGITS = range(13, 20)
_PHONE_DIGITS = range(8, 16)
_LONGEST_IBAN = 34


def mask_pii(text: str) -> str:
    """Returns a text in which the kinds of what was found stand, such as `[email]`.

    >>> mask_pii("Write to ann@example.org or call +44 20 7946 0958, order 20240301")
    'Write to [email] or call [phone], order 20240301'
    """
    for pattern, replace in _MASKS:
        text = pattern.sub(replace, text)
    return text


def _is_card(digits: str) -> bool:
    """Returns whether digits pass the check of payment cards (Luhn, ISO/IEC 7812-1)."""
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return len(digits) in _CARD_DIGITS and sum(map(_digit_sum, doubled)) % 10 == 0


def _digit_sum(number: int) -> int:
    return number // 10 + number % 10


def _card(match: re.Match[str]) -> str:
    digits = "".join(_DIGITS.findall(match[0]))
    return "[card]" if _is_card(digits) and len(set(digits)) > 1 else match[0]


def _iban(match: re.Match[str]) -> str:
    """Masks a number that passes the check of ISO 13616: it is 1 modulo 97."""
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
"""What is looked for, in order: a later pattern sees what earlier ones left."""
