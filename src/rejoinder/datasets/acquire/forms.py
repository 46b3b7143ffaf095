"""The kinds of data files: how each is cleaned, checked and counted.

A file is checked by the parser of its reader.
"""

import json
import re
from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rejoinder.datasets.acquire.cleaning import inference_lines, latin, plain, sentences, unchanged
from rejoinder.datasets.coco import parse_captions
from rejoinder.datasets.cqa import parse_cqa, parse_relevancy
from rejoinder.datasets.labelled import parse_probing, parse_sst, parse_trec
from rejoinder.datasets.sentence_pairs import NLI_CLASSES, parse_labels, parse_mrpc, parse_sick
from rejoinder.datasets.sts import parse_inputs, parse_scores, parse_stsb
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.tables import decoded_lines

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
