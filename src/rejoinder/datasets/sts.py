"""The STS Benchmark (Cer et al. 2017): graded pairs of sentences, by genre."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.files import (
    is_file,
    number_of,
    read_bytes,
    refuse_repeats,
)
from rejoinder.errors import DataMissingError, InputError
from rejoinder.files.hashed import blake2b_number, sha256_of
from rejoinder.formats.tables import tab_separated, text_lines

ROWS = {"train": 5_749, "dev": 1_500, "test": 1_379}
"""Published numbers of pairs."""

_PLACES = (
    "raw/STSBenchmark",
    "stsbenchmark",
    "",
    "senteval/downstream/STS/STSBenchmark",
    "downstream/STS/STSBenchmark",
    "STS/STSBenchmark",
)
_COLUMNS = (7, 9)
"""Genre, file, year, id, score, two sentences; some rows also name the sources of both."""


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a gold score."""

    split: str
    form: str
    """`official` as published; `senteval`: tokenised and lower-cased, another text."""
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]
    """(N,) float64, 0 (unrelated) to 5 (the same)."""
    genres: list[str]
    """Of the benchmark main-captions, main-forums or main-news (main-forum is main-forums); of
    the yearly tasks the subset or track."""
    sha256: str
    """Of the file, or files."""
    ids: list[str]
    """A name for each pair that stays the same: the line, with the subset if there are several."""

    def __len__(self) -> int:
        return len(self.gold)


def read_stsb(data: Path, split: str, form: str | None = None) -> GradedPairs:
    """A split of the STS Benchmark, wherever it lies under `data`.

    Args:
        data: a folder of data sets, or the folder of the benchmark itself.
        split: train, dev or test.
        form: `official` or `senteval`; none: the first that is there, official first.

    Raises:
        InputError: the file is not there, or a row is not what it has to be.
    """
    if split not in ROWS:
        raise InputError(f"the STS Benchmark has no split {split!r}; it has {', '.join(ROWS)}.")
    looked = []
    for place in _PLACES:
        path = data / place / f"sts-{split}.csv"
        looked.append(str(path))
        if is_file(path) or is_file(path.with_name(f"{path.name}.zst")):
            pairs = _read(path, split)
            # SentEval's folder holds either form: `rejoinder data add` tokenises nothing
            if form in (None, pairs.form):
                return pairs
    raise DataMissingError(
        f"the STS Benchmark ({form or 'any form'}) is not there; looked for {', '.join(looked)}. "
        "It is Stsbenchmark.tar.gz of the STS wiki (scores CC BY-SA 4.0)."
    )


def _read(path: Path, split: str) -> GradedPairs:
    content = read_bytes(path)
    rows = parse_stsb(content, path)
    if len(rows) != ROWS[split]:
        raise InputError(
            f"{path} has {len(rows)} pairs; the {split} split has {ROWS[split]}. It is cut, or "
            "another data set."
        )
    first = [row[5] for _, _, row in rows]
    return GradedPairs(
        split,
        "senteval" if is_tokenised(first) else "official",
        first,
        [row[6] for _, _, row in rows],
        np.array([gold for _, gold, _ in rows]),
        ["main-forums" if row[0] == "main-forum" else row[0] for _, _, row in rows],
        sha256_of(content),
        [f"{split}:{number}" for number, _, _ in rows],
    )


def parse_stsb(content: bytes, path: Path) -> list[tuple[int, float, list[str]]]:
    """The rows of one file: number of the line, score, fields. Quotes are plain characters.

    Raises:
        InputError: a line is not of its form, or its genre, file, year and id are repeated.
    """
    rows = []
    for number, line in enumerate(text_lines(content, path), 1):
        if not line:
            continue
        row = tab_separated(line, _COLUMNS, path, number)
        rows.append((number, number_of(row[4], 0, 5, path, number), row))
    ids = [" ".join(row[:4]) for _, _, row in rows]
    refuse_repeats(ids, [number for number, _, _ in rows], path)
    return rows


def is_tokenised(sentences: list[str]) -> bool:
    """Whether all is lower case: the form that SentEval's download script leaves behind."""
    return all(sentence == sentence.lower() for sentence in sentences)


def pair_keys(first: Sequence[str], second: Sequence[str]) -> NDArray[np.uint64]:
    """(N,) uint64, one key for all spellings of a pair of sentences, in either order.

    Of each sentence the letters and digits count, NFKC and case folded: so a set and its tokenised
    form, where quotes and spaces differ, have the same keys. The first 8 bytes of a BLAKE2b hash.

    >>> one, other = pair_keys(["It's red.", "No!"], ["no", "it 's RED"]).tolist()
    >>> one == other
    True
    """
    keys = np.empty(len(first), np.uint64)
    for row, pair in enumerate(zip(first, second, strict=True)):
        joined = "\n".join(sorted(map(_letters, pair))).encode("utf-8", "replace")
        keys[row] = blake2b_number(joined)
    return keys


def _letters(sentence: str) -> str:
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(filter(str.isalnum, folded))


def without_repeats(pairs: GradedPairs, known: set[frozenset[str]]) -> GradedPairs:
    """The pairs whose two texts are not in `known`, in any order, nor earlier among themselves.

    `known` takes up the pairs that are kept: call it for train, dev and test in turn.
    """
    kept = []
    for row, pair in enumerate(zip(pairs.first, pairs.second, strict=True)):
        texts = frozenset(pair)
        if texts not in known:
            known.add(texts)
            kept.append(row)
    return GradedPairs(
        pairs.split,
        pairs.form,
        [pairs.first[row] for row in kept],
        [pairs.second[row] for row in kept],
        pairs.gold[kept],
        [pairs.genres[row] for row in kept],
        pairs.sha256,
        [pairs.ids[row] for row in kept],
    )
