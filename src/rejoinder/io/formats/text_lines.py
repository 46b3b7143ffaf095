"""Lines of UTF-8 text as a stream: of a file, which may be compressed, or of pieces of bytes.

Halves of surrogate pairs: Python's strings and JSON's escapes can hold them, UTF-8 can't.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import LONGEST_LINE, decompressed, line_blocks

_SNIFFED = 1 << 14
"""Characters by which a document is known."""
_DOCUMENTS = (
    (re.compile(r"From \S.*\n(?:[>\w-]+:|\s)"), "a mailbox (mbox)"),
    (re.compile(r"\s*<(?:!doctype|html|\?xml)\b", re.IGNORECASE), "HTML or XML"),
    (re.compile(r"%PDF-"), "a PDF document"),
)
_BLOCK_BYTES = 1 << 16
"""Bytes that are decoded at a time; lines that come slowly wait for as many."""
_MAGIC = {
    b"\x93NUMPY": "a NumPy array (.npy)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"PK\x03\x04": "a zip archive (.zip, .npz, .xlsx)",
    b"\x1f\x8b": "compressed by gzip",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstandard",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""First bytes of common formats. Only content that is not UTF-8 text is looked up here."""
_LONGEST_MAGIC = max(map(len, _MAGIC))


def file_lines(path: Path, on_read: Callable[[int], None] | None = None) -> Iterator[str]:
    """Yields the lines of a file, plain or compressed (gzip, bzip2, xz, zstandard).

    `on_read` is called after each read with the number of bytes read from the file itself.

    Raises:
        InputError: the file can't be read or is damaged; also what `text_lines` raises.
        MissingExtraError: it is compressed by zstandard, which is not installed.
    """
    return text_lines(decompressed(path, on_read), str(path))


def text_lines(pieces: Iterable[bytes], name: str, *, any_content: bool = False) -> Iterator[str]:
    r"""Yields lines without their ends, which are LF or CRLF. A byte order mark is left out.

    Content that begins like a document of another format is refused, unless `any_content`.

    >>> list(text_lines([b"How old", b" are you?\r\n\nYes."], "a file"))
    ['How old are you?', '', 'Yes.']

    Raises:
        InputError: the content is empty, is not UTF-8, holds a NUL byte, or is a document. The
            message begins with `name`, and names the line and the format that it seems to have.
    """
    head, number = b"", 0

    def refuse(before: int) -> None:
        raise long_line(name, number + before + 1)

    for block in line_blocks(pieces, _BLOCK_BYTES, refuse):
        head = head or block[:_LONGEST_MAGIC]
        text = _decoded(block, head, name, number)
        if not number:
            text = text.removeprefix("\ufeff")
            if not any_content:
                _refuse_documents(text[:_SNIFFED], name)
        lines = text.removesuffix("\n").split("\n")
        number += len(lines)
        yield from (line.removesuffix("\r") for line in lines)
    if not number:
        raise InputError(f"{name} is empty; one sentence per line is expected.")


def long_line(name: str, number: int, longest: int = LONGEST_LINE) -> InputError:
    """Returns the error of a line that is too long to be text."""
    return InputError(
        f"{name} line {number:,} has more than {longest:,} bytes; it is not a line of text. Is "
        "the file whole, and of the right kind?"
    )


def _refuse_documents(head: str, name: str) -> None:
    """Refuses the beginning of a file whose lines are not texts.

    Raises:
        InputError: names the format, and what can be read.
    """
    kind = next((said for pattern, said in _DOCUMENTS if pattern.match(head)), None)
    if kind is None and head.lstrip()[:1] in ("{", "["):
        kind = "a JSON document" if _is_json(head.lstrip()) else None
    if kind is not None:
        raise InputError(
            f"{name} seems to be {kind}; lines of text are expected, one text each, or a table or "
            "JSON lines with a text in each row (.csv, .tsv, .parquet, .jsonl)."
        )


def _is_json(head: str) -> bool:
    """Returns whether text that begins with a bracket is the whole or the beginning of JSON."""
    try:
        _, end = json.JSONDecoder().raw_decode(head)
    except RecursionError:
        return True
    except ValueError as error:
        at: int = getattr(error, "pos", 0)
        # more than a line of valid JSON, or all that was looked at
        return len(head[:at].split("\n", 1)[-1].strip()) > 0 < head.find("\n", 0, at) or (
            at >= _SNIFFED - 1
        )
    return not head[end:].split("\n", 1)[0].strip()


def _decoded(block: bytes, head: bytes, name: str, lines_before: int) -> str:
    """Decodes a block of lines, or raises an error that names the format beginning with `head`."""
    null = block.find(0)
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        offset, problem = error.start, f"is not UTF-8 (byte 0x{block[error.start]:02x})"
    else:
        if null < 0:
            return text
        offset, problem = null, "holds a NUL byte"
    format_name = next((known for magic, known in _MAGIC.items() if head.startswith(magic)), None)
    if format_name is None and null >= 0:
        format_name = "a binary file"
    number = lines_before + block.count(b"\n", 0, offset) + 1
    problem = f"line {number} {problem}"
    if format_name is None:
        raise InputError(
            f"{name}: {problem}; lines of UTF-8 text are expected, one sentence each. Convert the "
            "file, for example by: iconv -f LATIN1 -t UTF-8."
        )
    raise InputError(
        f"{name} seems to be {format_name} ({problem}); lines of UTF-8 text are expected, one "
        "sentence each."
    )


def replace_surrogates(text: str) -> str:
    r"""Joins surrogate pairs to characters and replaces every other half by U+FFFD.

    >>> replace_surrogates("a\ud83d\ude00b\udc00") == "a\U0001f600b\ufffd"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
