"""Cleans files of data sets: byte order marks, line ends, encodings and escapes."""

import json
import re
from pathlib import Path

from rejoinder.io.formats.tables import BYTE_ORDER_MARK, below_header

_ESCAPE = re.compile(r"M-(\^?)(?: ([!-/:-@\[-`{-~])(?: |$)|([ -~]))", re.MULTILINE)
"""Matches the escape of `cat -v` for a byte above 127. Tokenisers split it before punctuation:
`M- { `."""


def restore_escapes(text: str) -> tuple[str, int]:
    """Restores the Windows-1252 characters that `cat -v` wrote as `M-i` or `M-^E`.

    Returns the text, and the number of restored characters. A text that has capital letters
    elsewhere is not changed, because its `M-` may be meant as text.

    >>> restore_escapes("the clichM-is M-^V and more")
    ('the clichés – and more', 2)
    >>> restore_escapes("The M-16 rifle")
    ('The M-16 rifle', 0)
    >>> restore_escapes("crM-hme brM- { lM-ie")
    ('crème brûlée', 3)
    """
    if re.search("[A-Z]", _ESCAPE.sub("", text)):
        return text, 0

    def byte(match: re.Match[str]) -> str:
        code = ord(match[2] or match[3])
        value = (code ^ 64) + 128 if match[1] else code + 128
        return windows_1252(bytes([value]))

    return _ESCAPE.subn(byte, text)


_WINDOWS = {
    byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xA0)
}


def windows_1252(content: bytes) -> str:
    r"""Decodes Windows-1252. The five bytes that it does not define are read as Latin-1.

    >>> windows_1252(b"so \x85 clich\xe9 \x81")
    'so … cliché \x81'
    """
    return content.decode("latin-1").translate(_WINDOWS)


def plain(content: bytes) -> tuple[bytes, list[str]]:
    """Removes a byte order mark, and carriage returns at line ends."""
    notes = []
    if content.startswith(BYTE_ORDER_MARK):
        content = content.removeprefix(BYTE_ORDER_MARK)
        notes.append("the byte order mark was removed")
    if returns := content.count(b"\r\n"):
        content = content.replace(b"\r\n", b"\n")
        notes.append(f"{returns:,} carriage returns at line ends were removed")
    return content, notes


def sentences(content: bytes) -> tuple[bytes, list[str]]:
    """Converts sentences to UTF-8 and restores escapes of `cat -v`. Byte 0x85 is an ellipsis."""
    content, notes = plain(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = windows_1252(content)
        changed = sum(not line.isascii() for line in content.split(b"\n"))
        notes.append(f"{changed:,} lines were converted from Windows-1252 to UTF-8")
    text, escapes = restore_escapes(text)
    if escapes:
        notes.append(f"{escapes:,} escapes of `cat -v` were replaced by their characters")
    return text.encode("utf-8"), notes


def latin(content: bytes) -> tuple[bytes, list[str]]:
    """Converts a file of TREC to Latin-1, as published. Its readers expect that."""
    content, notes = plain(content)
    if not content.isascii():
        try:
            content = content.decode("utf-8").encode("latin-1")
        except UnicodeError:
            return content, notes
        notes.append("it was converted from UTF-8 to Latin-1, as published")
    return content, notes


def inference_lines(content: bytes, path: Path) -> tuple[bytes, list[str]]:
    """Converts the table of SNLI or MultiNLI to JSON lines. JSON lines are returned as they are."""
    if not content.startswith(b"gold_label\t"):
        return content, []
    names = ("gold_label", "sentence1", "sentence2")
    rows = [
        json.dumps(dict(zip(names, row.fields, strict=True)))
        for row in below_header(content, path, names, exact=False)
    ]
    note = "the table was converted to JSON lines of gold_label, sentence1 and sentence2"
    return "".join(f"{row}\n" for row in rows).encode("utf-8"), [note]


def unchanged(content: bytes) -> tuple[bytes, list[str]]:
    """Returns the file as it is."""
    return content, []
