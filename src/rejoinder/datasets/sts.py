"""The STS Benchmark (Cer et al. 2017): pairs of sentences with a score, by genre."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.files import is_file, missing, number_of, read_bytes, refuse_repeats
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import blake2b_number, sha256_of
from rejoinder.io.formats.tables import tab_separated, text_lines

ROWS = {"train": 5_749, "dev": 1_500, "test": 1_379}
"""Number of pairs as published, by split."""

_FOLDERS = (
    "raw/STSBenchmark",
    "stsbenchmark",
    "",
    "senteval/downstream/STS/STSBenchmark",
    "downstream/STS/STSBenchmark",
    "STS/STSBenchmark",
)
_COLUMNS = (7, 9)
"""Allowed numbers of columns: genre, file, year, id, score, and two sentences; some rows also name
the sources of both sentences."""


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a gold score."""

    split: str
    form: str
    """`official` as published, or `senteval`: tokenised and lower-cased."""
    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]
    """(N,) float64, from 0 (unrelated) to 5 (same meaning)."""
    genres: list[str]
    """The genre of each pair: main-captions, main-forums or main-news in the benchmark, the subset
    or track in the yearly tasks."""
    sha256: str
    ids: list[str]
    """A stable name for each pair: the line, after the subset if there are several."""

    def __len__(self) -> int:
        return len(self.gold)


def read_stsb(data: Path, split: str, form: str | None = None) -> GradedPairs:
    """Reads a split of the STS Benchmark: train, dev or test.

    `data` is a folder of data sets, or the folder of the benchmark itself. `form` is `official` or
    `senteval`. None means any, official first.

    Raises:
        InputError: the file is missing, or a row is invalid.
    """
    if split not in ROWS:
        raise InputError(f"the STS Benchmark has no split {split!r}; it has {', '.join(ROWS)}.")
    paths = [data / folder / f"sts-{split}.csv" for folder in _FOLDERS]
    for path in paths:
        if is_file(path) or is_file(path.with_name(f"{path.name}.zst")):
            pairs = _read(path, split)
            # SentEval's folder may hold either form, because `rejoinder data add` never tokenises
            if form in (None, pairs.form):
                return pairs
    hint = "It is Stsbenchmark.tar.gz of the STS wiki (scores CC BY-SA 4.0)."
    raise missing(f"the STS Benchmark ({form or 'any form'})", paths, hint)


def _read(path: Path, split: str) -> GradedPairs:
    content = read_bytes(path)
    rows = parse_stsb(content, path)
    if len(rows) != ROWS[split]:
        raise InputError(
            f"{path} has {len(rows)} pairs; the {split} split has {ROWS[split]}. The file is cut, "
            "or it is another data set."
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
    """Parses the rows of a file: line number, score, fields. Quotes are plain characters."""
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
    """Returns whether all text is lower case, as SentEval's download script leaves it."""
    return all(sentence == sentence.lower() for sentence in sentences)


def pair_keys(first: Sequence[str], second: Sequence[str]) -> NDArray[np.uint64]:
    """Returns (N,) uint64 keys of pairs, equal for all spellings and both orders of a pair.

    Only letters and digits count, after NFKC and case folding. So a set and its tokenised form,
    where quotes and spaces differ, have the same keys. A key is an 8-byte BLAKE2b hash.

    >>> first, second = pair_keys(["It's red.", "No!"], ["no", "it 's RED"]).tolist()
    >>> first == second
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
    """Returns the pairs of a split without repetitions, in either order of the two texts.

    Pairs of texts in `known` are left out too. The kept pairs are added to it, so that train, dev
    and test can be handled in turn.
    """
    kept = []
    for index, pair in enumerate(zip(pairs.first, pairs.second, strict=True)):
        texts = frozenset(pair)
        if texts not in known:
            known.add(texts)
            kept.append(index)
    return replace(
        pairs,
        first=[pairs.first[index] for index in kept],
        second=[pairs.second[index] for index in kept],
        gold=pairs.gold[kept],
        genres=[pairs.genres[index] for index in kept],
        ids=[pairs.ids[index] for index in kept],
    )
