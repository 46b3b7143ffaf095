"""Halves of surrogate pairs: Python's strings and JSON's escapes can hold them, UTF-8 can't."""

import re

_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def replace_surrogates(text: str) -> str:
    r"""Joins surrogate pairs to characters and replaces every other half by U+FFFD.

    >>> replace_surrogates("a\ud83d\ude00b\udc00") == "a\U0001f600b\ufffd"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_escaped_surrogates(content: bytes) -> bytes:
    r"""Replaces the JSON escape of every half of a surrogate pair by the escape of U+FFFD.

    >>> replace_escaped_surrogates(rb'"\ud83d\ude00 \ud83d \\ud83d"')
    b'"\\ud83d\\ude00 \\ufffd \\\\ud83d"'
    """
    if not _HALF.search(content):
        return content
    return _ESCAPES.sub(_replacement, content)


def _replacement(match: re.Match[bytes]) -> bytes:
    escape = match.group()
    return escape if len(escape) != 6 else b"\\ufffd"
