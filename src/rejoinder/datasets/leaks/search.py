"""Counts the sentences and pairs that training data shares with evaluation sets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rejoinder.datasets.files import is_file
from rejoinder.datasets.leaks.hashes import (
    EvaluationHashes,
    Hashes,
    Indices,
    combined_hashes,
    distinct,
    known_indices,
    no_hashes,
    sentence_hashes,
    shipped,
)
from rejoinder.datasets.leaks.sources import Rows, read_rows
from rejoinder.errors import InputError, nearest

LeakSearchProgress = Callable[[str, int], None]
"""Called with the training source and the number of its rows that were searched."""


@dataclass(frozen=True)
class Leak:
    """The normalised sentences and pairs that a training source shares with an evaluation set."""

    train: str
    """Path of the training source."""
    train_rows: int
    """Number of rows of the source."""
    evaluation: str
    """Name of the evaluation set."""
    sentences: int
    """Number of distinct sentences of the set that occur in the source."""
    of_sentences: int
    """Number of distinct sentences of the set."""
    rows: int
    """Number of rows of the source that hold a sentence of the set."""
    pairs: int
    """Number of distinct pairs of the set whose sentences are both in one row of the source."""
    of_pairs: int
    """Number of distinct pairs of the set; 0 for a set of single sentences."""
    examples: tuple[str, ...]
    """The first distinct shared sentences, as the source has them."""


def evaluation_sets(names: Sequence[str]) -> list[EvaluationHashes]:
    """Returns sets by name, by the part before a dash, or by file; without names all shipped sets.

    A name is one such as `stsb-dev`, or `stsb` for its train, dev and test, or the path of a file.

    Raises:
        InputError: a name is neither a set nor a file.
    """
    known = shipped()
    chosen: dict[str, EvaluationHashes] = {} if names else dict(sorted(known.items()))
    for name in names:
        family = {
            each: known[each] for each in sorted(known) if name in (each, each.rpartition("-")[0])
        }
        if not family and not is_file(Path(name)):
            raise InputError(
                f"{name!r} is neither a file nor a shipped set; {nearest(name, known)}."
            )
        chosen |= family or {name: _from_file(Path(name))}
    return list(chosen.values())


def _from_file(path: Path) -> EvaluationHashes:
    """Hashes the sentences of a file, and the pairs within each row."""
    sentences, pairs = no_hashes(), no_hashes()
    for rows in read_rows(path, columns=2):
        hashes = sentence_hashes(rows.sentences)
        row_of = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
        sentences = distinct(sentences, hashes)
        pairs = distinct(pairs, row_pairs(hashes, row_of))
    if not len(sentences):
        raise InputError(f"{path} has no sentence to look for.")
    return EvaluationHashes(str(path), sentences, pairs)


def row_pairs(hashes: Hashes, rows: Indices) -> Hashes:
    """Returns the hashes of all pairs of sentences within a row, 0 for a pair with a hash of 0.

    `hashes` are those of N sentences, and `rows` (N,) the row of each, ascending.
    """
    pairs, apart = [no_hashes()], 1
    while apart < len(rows):
        together = np.flatnonzero(rows[apart:] == rows[:-apart])
        if not len(together):
            break
        pairs.append(combined_hashes(hashes[together], hashes[together + apart]))
        apart += 1
    return np.concatenate(pairs)


def find_leaks(
    train: Iterable[Path],
    sets: Sequence[EvaluationHashes],
    *,
    examples: int = 0,
    progress: LeakSearchProgress = lambda _source, _rows: None,
) -> list[Leak]:
    """Searches training sources for the sentences and pairs of evaluation sets.

    Returns one `Leak` per source and set, ordered by source, each with the first `examples`
    sentences. Sources are folders of pairs and files, as `read_rows` takes them. Memory is bounded
    by a block of a file and the hashes of the sets. `progress` is called after each block.

    Raises:
        InputError: a source can't be read.
    """
    sentences = distinct(*(each.sentences for each in sets))
    pairs = distinct(*(each.pairs for each in sets))
    # for each set (sentences,) bool: which of all sentences belong to it
    members = [np.isin(sentences, each.sentences) for each in sets]
    leaks: list[Leak] = []
    for path in train:
        seen, whole = np.zeros(len(sentences), bool), np.zeros(len(pairs), bool)
        holding = np.zeros(len(sets), np.int64)
        shown: list[list[str]] = [[] for _ in sets]
        done = 0
        for rows in read_rows(path):
            hits, known = known_indices(sentences, sentence_hashes(rows.sentences))
            row_of = np.searchsorted(rows.offsets, hits, side="right") - 1
            for number, of_set in enumerate(member[known] for member in members):
                holding[number] += len(np.unique(row_of[of_set]))
                if len(shown[number]) < examples:
                    fresh = hits[of_set & ~seen[known]]
                    shown[number] += _texts(rows, fresh, examples - len(shown[number]))
            seen[known] = True
            whole[known_indices(pairs, row_pairs(sentences[known], row_of))[1]] = True
            done += len(rows)
            progress(str(path), done)
        leaks += [
            Leak(
                str(path),
                done,
                each.name,
                len(np.intersect1d(each.sentences, sentences[seen], assume_unique=True)),
                len(each.sentences),
                int(holding[number]),
                len(np.intersect1d(each.pairs, pairs[whole], assume_unique=True)),
                len(each.pairs),
                tuple(shown[number]),
            )
            for number, each in enumerate(sets)
        ]
    return leaks


def _texts(rows: Rows, indices: Indices, count: int) -> list[str]:
    """Returns the first `count` sentences at `indices`, each once."""
    chosen = rows.sentences.gather(indices)
    _, firsts = np.unique(sentence_hashes(chosen), return_index=True)
    return chosen.gather(np.sort(firsts)[:count]).to_list()
