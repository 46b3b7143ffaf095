"""The kinds of data files: how each is cleaned, checked and counted.

A file is checked by the parser of its reader.

Cleans files of data sets: byte order marks, line ends, encodings and escapes.
"""

import json
import re
from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rejoinder.datasets.labelled import (
    NLI_CLASSES,
    parse_captions,
    parse_labels,
    parse_mrpc,
    parse_probing,
    parse_sick,
    parse_sst,
    parse_trec,
)
from rejoinder.datasets.semeval import (
    parse_cqa,
    parse_inputs,
    parse_relevancy,
    parse_scores,
    parse_stsb,
)
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK, below_header, decoded_lines

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


_OTHERS = re.compile(rb"[^a-z0-9]+")
_FEW_LETTERS = 200
"""A text with fewer letters is in another alphabet, and its fingerprint means little."""


@dataclass(frozen=True)
class Examined:
    """A file that has been cleaned and checked."""

    content: bytes
    rows: int
    letters: str
    """A fingerprint of the letters a-z and digits. Empty if the kind has none."""
    notes: tuple[str, ...]
    """One clause per change."""


def examine(content: bytes, path: Path, kind: str) -> Examined:
    """Cleans a file, checks that it is of a `DataFile.kind`, and counts its rows."""
    form = _FORMS[kind]
    cleaned, notes = form.clean(content)
    if kind == "nli":
        cleaned, changes = inference_lines(cleaned, path)
        notes += changes
    parsed = form.parse(cleaned, path)
    rows = parsed if isinstance(parsed, int) else len(parsed)
    return Examined(cleaned, rows, form.letters(cleaned), tuple(notes))


def _letters(content: bytes) -> str:
    """Returns a fingerprint that is the same for any tokenisation, case and quotes."""
    try:
        # İ becomes i and a dot, so it counts as i
        content = content.decode("utf-8").lower().encode("utf-8")
    except UnicodeDecodeError:
        content = content.lower()
    letters = _OTHERS.sub(b"", content)
    return sha256_of(letters)[:16] if len(letters) >= _FEW_LETTERS else ""


def _letters_of_stsb(content: bytes) -> str:
    """Leaves out the sources, which only some editions of the STS Benchmark have."""
    return _letters(b"\n".join(b"\t".join(row.split(b"\t")[:7]) for row in content.split(b"\n")))


def _no_letters(_content: bytes) -> str:
    return ""


def _lines(content: bytes, path: Path) -> list[str]:
    if b"\0" in content[:4096]:
        raise InputError(f"{path} is not a text file: it has a zero byte.")
    return decoded_lines(content, path)


def judged_rows(content: bytes, path: Path) -> list[tuple[str, str, str]]:
    """Parses JSON lines of SNLI or MultiNLI: premise, hypothesis and class of judged rows."""
    rows = []
    for number, line in enumerate(decoded_lines(content, path), 1):
        try:
            tree = json.loads(line)
            label, *texts = (tree[name] for name in ("gold_label", "sentence1", "sentence2"))
        except (ValueError, KeyError, TypeError, RecursionError):
            label, texts = None, []
        if label not in (*NLI_CLASSES, "-") or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"{path} line {number}: expected JSON with gold_label, sentence1 and sentence2."
            )
        if label != "-":
            rows.append((*(" ".join(text.split()) for text in texts), label))
    return rows


def _questions(content: bytes, path: Path) -> int:
    """Counts related questions, those with the label `?` too."""
    return sum(len(query.related) for query in parse_cqa(content, path, None))


def _features(content: bytes, path: Path) -> int:
    """Returns the rows of the matrix in a safetensors file. Its header is enough."""
    try:
        length = int.from_bytes(content[:8], "little")
        rows, _columns = json.loads(content[8 : 8 + length])["features"]["shape"]
        return int(rows)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        raise InputError(f"{path} is not a safetensors file with the matrix features.") from None


class _Form(NamedTuple):
    clean: Callable[[bytes], tuple[bytes, list[str]]]
    parse: Callable[[bytes, Path], Sized | int]
    """Returns the rows or their number. Refuses other content."""
    letters: Callable[[bytes], str] = _letters


_FORMS = {
    "sentences": _Form(sentences, _lines),
    "sst2": _Form(sentences, partial(parse_sst, classes=2)),
    "sst5": _Form(sentences, partial(parse_sst, classes=5)),
    "trec": _Form(latin, parse_trec),
    "mrpc": _Form(plain, parse_mrpc),
    "sick": _Form(plain, parse_sick),
    "sts_input": _Form(plain, parse_inputs),
    "sts_gs": _Form(plain, parse_scores),
    "stsb": _Form(plain, parse_stsb, _letters_of_stsb),
    "lines": _Form(plain, _lines, _no_letters),
    "nli_labels": _Form(plain, parse_labels, _no_letters),
    "nli": _Form(plain, judged_rows, _no_letters),
    "cqa_xml": _Form(unchanged, _questions),
    "cqa_gold": _Form(plain, parse_relevancy),
    "probing": _Form(plain, parse_probing, _no_letters),
    "coco_features": _Form(unchanged, _features, _no_letters),
    "coco_captions": _Form(unchanged, parse_captions, _no_letters),
}
