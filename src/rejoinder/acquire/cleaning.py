"""Files of data sets cleaned: byte order marks, ends of lines, encodings, escapes."""

import json
import re
from pathlib import Path

from rejoinder.formats.tables import table_columns

_BOM = b"\xef\xbb\xbf"
_ESCAPE = re.compile(r"M-(\^?)(?: ([!-/:-@\[-`{-~])(?: |$)|([ -~]))", re.MULTILINE)
"""What `cat -v` makes of a byte above 127; tokenisers split it before punctuation: `M- { `."""


def restore_escapes(text: str) -> tuple[str, int]:
    """Bytes that `cat -v` wrote as `M-i` or `M-^E`, as the Windows-1252 characters they were.

    Only in text without other capitals: there `M-` can be nothing else.

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


def windows_1252(content: bytes) -> str:
    r"""Text of Windows-1252; the five bytes that it leaves open are those of Latin-1.

    >>> windows_1252(b"so \x85 clich\xe9 \x81")
    'so … cliché \x81'
    """
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return "".join(
            bytes([byte]).decode("latin-1" if byte in b"\x81\x8d\x8f\x90\x9d" else "cp1252")
            for byte in content
        )


def plain(content: bytes) -> tuple[bytes, list[str]]:
    """Without a byte order mark and carriage returns at the ends of lines."""
    notes = []
    if content.startswith(_BOM):
        content = content.removeprefix(_BOM)
        notes.append("the byte order mark was cut")
    if returns := content.count(b"\r\n"):
        content = content.replace(b"\r\n", b"\n")
        notes.append(f"{returns:,} carriage returns at ends of lines were cut")
    return content, notes


def sentences(content: bytes) -> tuple[bytes, list[str]]:
    """As UTF-8, with what `cat -v` escaped; byte 0x85 is an ellipsis and ends no line."""
    content, notes = plain(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = windows_1252(content)
        changed = sum(not line.isascii() for line in content.split(b"\n"))
        notes.append(f"{changed:,} lines were Windows-1252 and are UTF-8 now")
    text, escapes = restore_escapes(text)
    if escapes:
        notes.append(f"{escapes:,} escapes of `cat -v` became the characters that they stand for")
    return text.encode("utf-8"), notes


def latin(content: bytes) -> tuple[bytes, list[str]]:
    """As Latin-1, as published: that is what readers of TREC expect."""
    content, notes = plain(content)
    if not content.isascii():
        try:
            content = content.decode("utf-8").encode("latin-1")
        except UnicodeError:
            return content, notes
        notes.append("it was UTF-8 and is Latin-1 now, as published")
    return content, notes


def inference_lines(content: bytes, path: Path) -> tuple[bytes, list[str]]:
    """JSON lines, also from the table that is published beside them.

    Raises:
        InputError: the table is not of its form.
    """
    if not content.startswith(b"gold_label\t"):
        return content, []
    names = ("gold_label", "sentence1", "sentence2")
    frame = table_columns(content, path, names).select(names)
    rows = [json.dumps(dict(zip(names, row, strict=True))) for row in frame.iter_rows()]
    note = "the table became JSON lines of gold_label, sentence1 and sentence2"
    return "".join(f"{row}\n" for row in rows).encode("utf-8"), [note]


def unchanged(content: bytes) -> tuple[bytes, list[str]]:
    """The file as it is."""
    return content, []
