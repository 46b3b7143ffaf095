"""The kinds of data files: how each is cleaned, checked and counted."""

import json
import re
from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path

from rejoinder.datasets.acquire.cleaning import inference_lines, latin, plain, sentences, unchanged
from rejoinder.datasets.coco import parse_captions
from rejoinder.datasets.cqa import parse_cqa, parse_relevancy
from rejoinder.datasets.files import number_of
from rejoinder.datasets.sentence_pairs import NLI_CLASSES, parse_mrpc, parse_sick
from rejoinder.datasets.sts import parse_stsb
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import filled_lines, text_lines

_OTHERS = re.compile(rb"[^a-z0-9]+")
_FEW_LETTERS = 200
"""A text with fewer is in another alphabet, and its fingerprint says little."""


@dataclass(frozen=True)
class Examined:
    """A file that has been cleaned and checked."""

    content: bytes
    rows: int
    letters: str
    """A fingerprint of the letters a-z and digits. Empty if the kind has none."""
    notes: tuple[str, ...]
    """The changes, a clause each."""


def examine(content: bytes, path: Path, kind: str) -> Examined:
    """Cleans a file, checks that it is of a `DataFile.kind`, and counts its rows."""
    form = _FORMS[kind]
    cleaned, notes = form.clean(content)
    if form.convert:
        cleaned, changes = form.convert(cleaned, path)
        notes += changes
    rows = form.count(cleaned, path)
    letters = _letters(form.text(cleaned)) if form.fingerprint else ""
    return Examined(cleaned, rows, letters, tuple(notes))


def _letters(content: bytes) -> str:
    """Returns a fingerprint that does not depend on tokenisation, case and quotes."""
    try:
        # İ becomes i and a dot, so it counts as i
        content = content.decode("utf-8").lower().encode("utf-8")
    except UnicodeDecodeError:
        content = content.lower()
    letters = _OTHERS.sub(b"", content)
    return sha256_of(letters)[:16] if len(letters) >= _FEW_LETTERS else ""


def _lines(content: bytes, path: Path) -> int:
    if b"\0" in content[:4096]:
        raise InputError(f"{path} is not a text file: it has a zero byte.")
    return len(text_lines(content, path))


def _matching(pattern: str, needed: str, encoding: str = "utf-8") -> Callable[[bytes, Path], int]:
    """Returns a function that checks that lines match `pattern`, and counts those not blank."""
    compiled = re.compile(pattern)

    def count(content: bytes, path: Path) -> int:
        rows = 0
        for number, line in filled_lines(content, path, encoding):
            if not compiled.match(line):
                raise InputError(f"{path} line {number}: {line[:30]!r}; {needed} is needed.")
            rows += 1
        return rows

    return count


def _table(parse: Callable[[bytes, Path], Sized], header: str = "") -> Callable[[bytes, Path], int]:
    """Returns a function that counts rows as a reader parses them, below a header."""

    def count(content: bytes, path: Path) -> int:
        if not content.startswith(header.encode()):
            raise InputError(f"{path} line 1: the columns {header!r} … are needed.")
        return len(parse(content, path))

    return count


def _gold(content: bytes, path: Path) -> int:
    """Counts the scores of STS. A line is blank where nobody judged the pair."""
    for number, line in filled_lines(content, path):
        number_of(line, 0, 5, path, number)
    return len(text_lines(content, path))


def _judged(content: bytes, path: Path) -> int:
    """Counts the rows of JSON lines that have a gold label."""
    rows = 0
    for number, line in enumerate(text_lines(content, path), 1):
        try:
            row = json.loads(line)
            label, sentences = row["gold_label"], (row["sentence1"], row["sentence2"])
        except (ValueError, KeyError, TypeError, RecursionError):
            label, sentences = None, ("", "")
        if label not in (*NLI_CLASSES, "-") or not all(isinstance(text, str) for text in sentences):
            raise InputError(
                f"{path} line {number}: JSON with gold_label, sentence1 and sentence2 is needed."
            )
        rows += label != "-"
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
        raise InputError(f"{path} is not a safetensors file with a matrix `features`.") from None


@dataclass(frozen=True)
class _Form:
    clean: Callable[[bytes], tuple[bytes, list[str]]]
    count: Callable[[bytes, Path], int]
    """Checks the content and counts its rows."""
    fingerprint: bool = True
    convert: Callable[[bytes, Path], tuple[bytes, list[str]]] | None = None
    text: Callable[[bytes], bytes] = lambda content: content


def _seven_columns(content: bytes) -> bytes:
    """Cuts the sources, which only some editions of the STS Benchmark have."""
    return b"\n".join(b"\t".join(line.split(b"\t")[:7]) for line in content.split(b"\n"))


_SCORED = r".*\S.*\t.*\S"
_TREC = r"(ABBR|DESC|ENTY|HUM|LOC|NUM):\S+ "
_FORMS = {
    "sentences": _Form(sentences, _lines),
    "sst2": _Form(sentences, _matching(r".*\t[01]\s*$", "a sentence, a tab and 0 or 1")),
    "sst5": _Form(sentences, _matching(r"[0-4] \S", "a class of 0 to 4 and a sentence")),
    "trec": _Form(latin, _matching(_TREC, "CLASS:fine and a question", "latin-1")),
    "mrpc": _Form(plain, _table(parse_mrpc, "Quality\t")),
    "sick": _Form(plain, _table(parse_sick, "pair_ID\t")),
    "sts_input": _Form(plain, _matching(_SCORED, "two sentences with a tab between them")),
    "sts_gs": _Form(plain, _gold),
    "stsb": _Form(plain, _table(parse_stsb), text=_seven_columns),
    "lines": _Form(plain, _lines, fingerprint=False),
    "nli_labels": _Form(
        plain,
        _matching(rf"({'|'.join(NLI_CLASSES)})\s*$", f"one of {', '.join(NLI_CLASSES)}"),
        fingerprint=False,
    ),
    "nli": _Form(plain, _judged, fingerprint=False, convert=inference_lines),
    "cqa_xml": _Form(unchanged, _questions),
    "cqa_gold": _Form(plain, _table(parse_relevancy)),
    "probing": _Form(
        plain,
        _matching(r"(tr|va|te)\t[^\t]+\t.*\S", "tr, va or te, a label, a sentence"),
        fingerprint=False,
    ),
    "coco_features": _Form(unchanged, _features, fingerprint=False),
    "coco_captions": _Form(unchanged, _table(parse_captions), fingerprint=False),
}
