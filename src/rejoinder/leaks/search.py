"""What of evaluation sets occurs in training data: the library call behind `rejoinder leaks`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.datasets.files import is_file
from rejoinder.errors import InputError, nearest
from rejoinder.leaks.hashes import joined, sentence_hashes
from rejoinder.leaks.sets import EvaluationSet, Hashes, distinct, none_of_them, places_in, shipped
from rejoinder.leaks.sources import Rows, read_rows

Progress = Callable[[str, int], None]
"""Called with the training source and its rows that are done."""


@dataclass(frozen=True)
class Leak:
    """What of one evaluation set occurs in one training source, normalised."""

    train: str
    train_rows: int
    """Of the source, all of them."""
    evaluation: str
    sentences: int
    """Distinct sentences of the set that occur."""
    of_sentences: int
    """Distinct sentences of the set."""
    rows: int
    """Of the source that hold a sentence of the set."""
    pairs: int
    """Distinct pairs of the set, both of whose sentences a row of the source holds."""
    of_pairs: int
    """Distinct pairs of the set; 0 where it has single sentences."""
    examples: tuple[str, ...]
    """The first sentences found, each once, as the source has them."""

    @property
    def share(self) -> float:
        """Of the set's sentences that occur, 0 to 1."""
        return self.sentences / self.of_sentences


def evaluation_sets(names: Sequence[str]) -> list[EvaluationSet]:
    """Sets by name, by the part before a dash (`stsb`: train, dev and test), or by file.

    Args:
        names: none: all that are shipped.

    Raises:
        InputError: neither a set nor a file.
    """
    known = shipped()
    found: dict[str, EvaluationSet] = {} if names else dict(sorted(known.items()))
    for name in names:
        family = {one: known[one] for one in sorted(known) if one in (name, *_splits(name))}
        if not family and not is_file(Path(name)):
            raise InputError(
                f"{name!r} is neither a file nor a shipped set: {nearest(name, known)}."
            )
        found |= family or {name: _from_file(Path(name))}
    return list(found.values())


def _splits(name: str) -> tuple[str, ...]:
    return tuple(f"{name}-{split}" for split in ("train", "dev", "test"))


def _from_file(path: Path) -> EvaluationSet:
    """The sentences of a file; the pairs of those of its rows that have several."""
    sentences, pairs = [none_of_them()], [none_of_them()]
    for rows in read_rows(path, columns=2):
        hashes = sentence_hashes(rows.sentences)
        sentences.append(distinct(hashes))
        pairs.append(
            distinct(row_pairs(hashes, np.repeat(np.arange(len(rows)), np.diff(rows.offsets))))
        )
    found = distinct(np.concatenate(sentences))
    if not len(found):
        raise InputError(f"{path} has no sentence to look for.")
    return EvaluationSet(str(path), found, distinct(np.concatenate(pairs)))


def row_pairs(hashes: Hashes, rows: NDArray[np.int64]) -> Hashes:
    """Hashes of all pairs of sentences within a row.

    Args:
        hashes: (N,) uint64, of sentences.
        rows: (N,) int64, ascending, the row of each.

    Returns:
        (P,) uint64, 0 where a sentence's is.
    """
    found, apart = [none_of_them()], 1
    while apart < len(rows):
        together = np.flatnonzero(rows[apart:] == rows[:-apart])
        if not len(together):
            break
        found.append(joined(hashes[together], hashes[together + apart]))
        apart += 1
    return np.concatenate(found)


def find_leaks(
    train: Iterable[Path],
    sets: Sequence[EvaluationSet],
    *,
    examples: int = 0,
    progress: Progress = lambda _source, _rows: None,
) -> list[Leak]:
    """What of each set occurs in each training source, sources first.

    Memory is bounded by a piece of a file and the hashes of the sets.

    Args:
        train: folders of pairs and files, as `read_rows` takes them.
        sets: what is looked for.
        examples: how many sentences to show of each set in each source.
        progress: called after each piece.

    Raises:
        InputError: a source can't be read.
    """
    search = _Search(sets, examples)
    return [leak for path in train for leak in search.through(path, progress)]


class _Search:
    """All sets at once: one look-up a sentence."""

    def __init__(self, sets: Sequence[EvaluationSet], examples: int) -> None:
        self.sets, self.examples = sets, examples
        self.sentences = distinct(np.concatenate([none_of_them(), *(s.sentences for s in sets)]))
        self.pairs = distinct(np.concatenate([none_of_them(), *(s.pairs for s in sets)]))
        # (sets, sentences) bool: which of all sentences are the set's
        self.members = np.array([np.isin(self.sentences, one.sentences) for one in sets])

    def through(self, path: Path, progress: Progress) -> list[Leak]:
        seen = np.zeros(len(self.sentences), bool)
        whole = np.zeros(len(self.pairs), bool)
        holding = np.zeros(len(self.sets), np.int64)
        shown: list[list[str]] = [[] for _ in self.sets]
        done = 0
        for rows in read_rows(path):
            hits, places = places_in(self.sentences, sentence_hashes(rows.sentences))
            row_of = np.searchsorted(rows.offsets, hits, side="right") - 1
            for number, members in enumerate(self.members):
                mine = members[places]
                holding[number] += len(np.unique(row_of[mine]))
                if len(shown[number]) < self.examples:
                    fresh = hits[mine & ~seen[places]]
                    shown[number] += self._texts(rows, fresh, self.examples - len(shown[number]))
            seen[places] = True
            whole[places_in(self.pairs, row_pairs(self.sentences[places], row_of))[1]] = True
            done += len(rows)
            progress(str(path), done)
        occurring, complete = self.sentences[seen], self.pairs[whole]
        return [
            Leak(
                str(path),
                done,
                one.name,
                len(np.intersect1d(one.sentences, occurring, assume_unique=True)),
                len(one.sentences),
                int(holding[number]),
                len(np.intersect1d(one.pairs, complete, assume_unique=True)),
                len(one.pairs),
                tuple(shown[number]),
            )
            for number, one in enumerate(self.sets)
        ]

    def _texts(self, rows: Rows, places: NDArray[np.int64], count: int) -> list[str]:
        """Sentences at places, those with the same hash once."""
        chosen = rows.sentences.gather(places)
        _, firsts = np.unique(sentence_hashes(chosen), return_index=True)
        return chosen.gather(np.sort(firsts)[:count]).to_list()
