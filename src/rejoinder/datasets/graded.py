"""Graded pairs that you made: in a file, or in memory."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.datasets.files import read_bytes
from rejoinder.datasets.sts import GradedPairs, graded_pairs
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.formats.json_lines import is_json_lines, json_rows, line_of
from rejoinder.io.formats.tables import table_rows

FIELDS = ("sentence1", "sentence2", "score")
_COLUMNS = (3, 7, 9)
"""Sentence, sentence and score; or as in the STS Benchmark."""


def read_graded(path: Path) -> GradedPairs:
    """Reads pairs of sentences with a score from 0 (unrelated) to 5 (same meaning).

    Lines are JSON objects with `sentence1`, `sentence2` and `score`; or two sentences and a score,
    separated by tabs; or rows as in the STS Benchmark. Compressed files are decompressed.

    Raises:
        InputError: the file can't be read, or a line is invalid.
    """
    content = read_bytes(path)
    pairs = _json_pairs(content, path) if is_json_lines(content) else _table_pairs(content, path)
    ids = list(map(str, range(len(pairs))))
    names = [path.name] * len(pairs)
    return graded_pairs("all", pairs, names, ids, sha256_of(content), names)


def graded_rows(frame: pl.DataFrame) -> GradedPairs:
    """Returns the pairs of a table with the columns of `FIELDS`.

    Raises:
        InputError: a score is not a number from 0 to 5.
    """
    pairs = _graded(frame, "row {} of the graded pairs".format)
    ids = list(map(str, range(len(pairs))))
    sha256 = sha256_of(json.dumps(pairs).encode("utf-8", "surrogatepass"))
    names = ["all"] * len(pairs)
    return graded_pairs("all", pairs, names, ids, sha256, names)


def _json_pairs(content: bytes, path: Path) -> list[tuple[str, str, float]]:
    frame = json_rows(content, path, dict(zip(FIELDS, ("text", "text", "label"), strict=True)))
    return _graded(frame, lambda row: f"{path} line {line_of(content, row)}")


def _graded(frame: pl.DataFrame, place: Callable[[int], str]) -> list[tuple[str, str, float]]:
    grades = frame["score"].cast(pl.Float64, strict=False)
    wrong = ~grades.is_between(0, 5).fill_null(value=False)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        found = str(frame["score"][row])[:20]
        raise InputError(f"{place(row)}: found {found!r}; expected a score from 0 to 5.")
    return frame.select("sentence1", "sentence2", grades).rows()


def _table_pairs(content: bytes, path: Path) -> list[tuple[str, str, float]]:
    pairs = []
    for row in table_rows(content, path, _COLUMNS):
        first, second, score = (0, 1, 2) if len(row.fields) == _COLUMNS[0] else (5, 6, 4)
        pairs.append((row[first], row[second], row.score(score, 0, 5)))
    return pairs
