"""The forms of files of data sets: cleaned, checked and counted, one function a form."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.cqa import parse_cqa
from rejoinder.datasets.files import tab_separated, text_lines
from rejoinder.datasets.sentence_pairs import NLI_CLASSES, parse_sick
from rejoinder.errors import InputError

_BOM = b"\xef\xbb\xbf"
_ESCAPE = re.compile(r"M-(\^?)(?: ([!-/:-@\[-`{-~])(?: |$)|([ -~]))", re.MULTILINE)
"""What `cat -v` makes of a byte above 127; tokenisers split it before punctuation: `M- { `."""
_OTHERS = re.compile(rb"[^a-z0-9]+")
_TREC = re.compile(r"(ABBR|DESC|ENTY|HUM|LOC|NUM):\S+ ")
_FEW_LETTERS = 200
"""Below them a text is in another alphabet, and a fingerprint says little."""
_PROBING = ("tr", "va", "te")


@dataclass(frozen=True)
class Examined:
    """A file that is of its form."""

    content: bytes
    """Cleaned."""
    rows: int
    letters: str
    """A fingerprint of the letters a-z and digits; empty where the form has none."""
    notes: tuple[str, ...]
    """What was changed, each a clause."""


def examine(content: bytes, path: Path, kind: str) -> Examined:
    """Clean a file, check that it is of the form `kind`, and count its rows.

    Raises:
        InputError: it is of another form; the message names the line.
    """
    form = _FORMS[kind]
    cleaned, notes = form.clean(content)
    rows = form.count(cleaned, path)
    letters = _letters(form.text(cleaned)) if form.fingerprint else ""
    return Examined(cleaned, rows, letters, tuple(notes))


def _letters(content: bytes) -> str:
    """The same for any tokenisation, case and quotes."""
    try:
        content = content.decode("utf-8").lower().encode("utf-8")  # a dotted I is an i as well
    except UnicodeDecodeError:
        content = content.lower()
    letters = _OTHERS.sub(b"", content)
    return hashlib.sha256(letters).hexdigest()[:16] if len(letters) >= _FEW_LETTERS else ""


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


def _plain(content: bytes) -> tuple[bytes, list[str]]:
    """Without a byte order mark and carriage returns at the ends of lines."""
    notes = []
    if content.startswith(_BOM):
        content = content.removeprefix(_BOM)
        notes.append("the byte order mark was cut")
    if returns := content.count(b"\r\n"):
        content = content.replace(b"\r\n", b"\n")
        notes.append(f"{returns:,} carriage returns at ends of lines were cut")
    return content, notes


def _sentences(content: bytes) -> tuple[bytes, list[str]]:
    """As UTF-8, with what `cat -v` escaped; byte 0x85 is an ellipsis and ends no line."""
    content, notes = _plain(content)
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


def _latin(content: bytes) -> tuple[bytes, list[str]]:
    """As Latin-1, as published: that is what readers of TREC expect."""
    content, notes = _plain(content)
    if not content.isascii():
        try:
            content = content.decode("utf-8").encode("latin-1")
        except UnicodeError:
            return content, notes
        notes.append("it was UTF-8 and is Latin-1 now, as published")
    return content, notes


def _inference(content: bytes) -> tuple[bytes, list[str]]:
    """JSON lines, also from the table that is published beside them."""
    content, notes = _plain(content)
    if not content.startswith(b"gold_label\t"):
        return content, notes
    header, *lines = content.decode("utf-8").rstrip("\n").split("\n")
    columns = header.split("\t")
    kept = [columns.index(name) for name in ("gold_label", "sentence1", "sentence2")]
    rows = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) <= max(kept):
            raise InputError(f"line {number} has {len(fields)} columns; {len(columns)} are needed.")
        gold, first, second = (fields[place] for place in kept)
        rows.append(json.dumps({"gold_label": gold, "sentence1": first, "sentence2": second}))
    notes.append("the table became JSON lines of gold_label, sentence1 and sentence2")
    return ("\n".join(rows) + "\n").encode("utf-8"), notes


def _unchanged(content: bytes) -> tuple[bytes, list[str]]:
    return content, []


def _lines(content: bytes, path: Path) -> int:
    if b"\0" in content[:4096]:
        raise InputError(f"{path} is no text: it has a zero byte.")
    return len(text_lines(content, path))


def _matching(pattern: str, meant: str, encoding: str = "utf-8") -> Callable[[bytes, Path], int]:
    """A count of lines that are not blank and begin with `pattern`."""
    compiled = re.compile(pattern)

    def count(content: bytes, path: Path) -> int:
        rows = 0
        for number, line in enumerate(text_lines(content, path, encoding), 1):
            if line.strip() and not compiled.match(line):
                raise InputError(f"{path} line {number}: {line[:30]!r}; {meant} is needed.")
            rows += bool(line.strip())
        return rows

    return count


def _table(columns: tuple[int, ...], header: str = "") -> Callable[[bytes, Path], int]:
    """A count of rows with so many columns, below a header."""

    def count(content: bytes, path: Path) -> int:
        lines = text_lines(content, path)
        if header and not (lines and lines[0].startswith(header)):
            raise InputError(f"{path} line 1: the columns {header!r} … are needed.")
        rows = 0
        for number, line in enumerate(lines, 1):
            if line.strip() and not (header and number == 1):
                tab_separated(line, columns, path, number)
                rows += 1
        return rows

    return count


def _sick(content: bytes, path: Path) -> int:
    _table((5,), "pair_ID\t")(content, path)
    return len(parse_sick(content, path))


def _gold(content: bytes, path: Path) -> int:
    """Scores of STS: blank where nobody judged."""
    lines = text_lines(content, path)
    for number, line in enumerate(lines, 1):
        if line.strip() and not re.fullmatch(r"[0-5](\.\d+)?", line.strip()):
            raise InputError(
                f"{path} line {number}: {line[:30]!r}; a score of 0 to 5 or nothing is needed."
            )
    return len(lines)


def _judged(content: bytes, path: Path) -> int:
    """Rows with a gold label, of JSON lines."""
    rows = 0
    for number, line in enumerate(text_lines(content, path), 1):
        try:
            row = json.loads(line)
            label, sentences = row["gold_label"], (row["sentence1"], row["sentence2"])
        except (ValueError, KeyError, TypeError):
            label, sentences = None, ("", "")
        if label not in (*NLI_CLASSES, "-") or not all(isinstance(one, str) for one in sentences):
            raise InputError(
                f"{path} line {number}: JSON with gold_label, sentence1 and sentence2 is needed."
            )
        rows += label != "-"
    return rows


def _questions(content: bytes, path: Path) -> int:
    """Related questions; those whose label is `?` count too."""
    ids = re.findall(rb'RELQ_ID="([^"]+)"', content)
    known = dict.fromkeys((one.decode("utf-8", "replace") for one in ids), True)
    return sum(len(query.related) for query in parse_cqa(content, path, known))


def _features(content: bytes, path: Path) -> int:
    """Rows of the matrix in a safetensors file, by its header: its beginning is enough."""
    try:
        length = int.from_bytes(content[:8], "little")
        rows, _ = json.loads(content[8 : 8 + length])["features"]["shape"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no safetensors file with a matrix `features`.") from None
    return int(rows)


def _captions(content: bytes, path: Path) -> int:
    try:
        captions = json.loads(content)["captions"]
    except (ValueError, KeyError, TypeError):
        captions = None
    if not isinstance(captions, list) or not all(isinstance(one, list) for one in captions):
        raise InputError(f"{path}: JSON with `captions`, a list for each image, is needed.")
    return len(captions)


@dataclass(frozen=True)
class _Form:
    clean: Callable[[bytes], tuple[bytes, list[str]]]
    count: Callable[[bytes, Path], int]
    fingerprint: bool = True
    text: Callable[[bytes], bytes] = lambda content: content


def _seven_columns(content: bytes) -> bytes:
    """Rows of the STS Benchmark without the sources that some have."""
    return b"\n".join(b"\t".join(line.split(b"\t")[:7]) for line in content.split(b"\n"))


_SCORED = r".*\S.*\t.*\S"
_FORMS = {
    "sentences": _Form(_sentences, _lines),
    "sst2": _Form(_sentences, _matching(r".*\t[01]\s*$", "a sentence, a tab and 0 or 1")),
    "sst5": _Form(_sentences, _matching(r"[0-4] \S", "a class of 0 to 4 and a sentence")),
    "trec": _Form(_latin, _matching(_TREC.pattern, "CLASS:fine and a question", "latin-1")),
    "mrpc": _Form(_plain, _table((5,), "Quality\t")),
    "sick": _Form(_plain, _sick),
    "sts_input": _Form(_plain, _matching(_SCORED, "two sentences with a tab between them")),
    "sts_gs": _Form(_plain, _gold),
    "stsb": _Form(_plain, _table((7, 9)), text=_seven_columns),
    "lines": _Form(_plain, _lines, fingerprint=False),
    "nli_labels": _Form(
        _plain,
        _matching(rf"({'|'.join(NLI_CLASSES)})\s*$", f"one of {', '.join(NLI_CLASSES)}"),
        fingerprint=False,
    ),
    "nli": _Form(_inference, _judged, fingerprint=False),
    "cqa_xml": _Form(_unchanged, _questions),
    "cqa_gold": _Form(_plain, _matching(r"\S+\t\S+\t\S+\t\S+\t(true|false)\s*$", "five columns")),
    "probing": _Form(
        _plain,
        _matching(rf"({'|'.join(_PROBING)})\t[^\t]+\t.*\S", "tr, va or te, a label, a sentence"),
        fingerprint=False,
    ),
    "coco_features": _Form(_unchanged, _features, fingerprint=False),
    "coco_captions": _Form(_unchanged, _captions, fingerprint=False),
}
