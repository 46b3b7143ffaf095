"""Ids of words that a vocabulary lacks: those of the words that they stand for, or buckets."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.buckets import word_buckets
from rejoinder.text.spelling import Spelling
from rejoinder.text.vocabulary import Vocabulary

_KEPT = 100_000
"""Number of words whose ids are kept."""
_LONGEST = 40
"""Characters of a word whose id is kept."""


class UnknownWords:
    """Finds the ids of words that a vocabulary lacks, and keeps those of many."""

    def __init__(self, vocabulary: Vocabulary, buckets: int = 0, *, spelling: bool = False) -> None:
        """Creates the ids of `buckets` buckets, which follow those of the vocabulary.

        With `spelling`, a misspelt word of the vocabulary has the id of the right one.
        """
        self.vocabulary, self.buckets, self.spelling = vocabulary, buckets, spelling
        self._ids: dict[str, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.vocabulary, self.buckets, self.spelling)

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the id of each word, (N,) int32; -1 where there is none."""
        found = list(map(self._ids.get, words))
        if None in found:
            places = [at for at, known in enumerate(found) if known is None]
            new = {words[at]: -1 for at in places}
            new = dict(zip(new, self._new_ids(list(new)).tolist(), strict=True))
            for at in places:
                found[at] = new[words[at]]
            if len(self._ids) > _KEPT:
                self._ids = {}
            self._ids |= {word: row for word, row in new.items() if len(word) <= _LONGEST}
        return np.array(found, np.int32)

    def _new_ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        ids = self._known(words) if self.spelling else np.full(len(words), -1, np.int32)
        if self.buckets:
            rest = np.flatnonzero(ids < 0)
            hashed = word_buckets([words[at] for at in rest.tolist()], self.buckets)
            ids[rest] = hashed + len(self.vocabulary)
        return ids

    @cached_property
    def _known(self) -> Spelling:
        return Spelling(self.vocabulary.words)


def _rebuilt(vocabulary: Vocabulary, buckets: int, spelling: bool) -> UnknownWords:
    return UnknownWords(vocabulary, buckets, spelling=spelling)
