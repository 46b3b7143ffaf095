"""Ids of the words of sentences: a kernel in C (`text/_words.c`), or the same in Python.

The kernel encodes sentences in 60 % of the time; `docs/decisions/kernels.md` has the figures.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from rejoinder.kernels import kernel
from rejoinder.text.buckets import word_buckets
from rejoinder.text.normalize import normalize_text, tokens_of
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.unicode_14 import classes
from rejoinder.text.vocabulary import Vocabulary


class WordIds:
    """Turns sentences into the ids of their words."""

    def __init__(self, vocabulary: Vocabulary, unknown_buckets: int) -> None:
        """Creates the ids of a vocabulary and `unknown_buckets` buckets of words not in it."""
        self.vocabulary, self.unknown_buckets = vocabulary, unknown_buckets
        self._native = kernel("text._words")

    def __reduce__(self) -> tuple[Any, ...]:
        # the kernel's table can't be copied
        return WordIds, (self.vocabulary, self.unknown_buckets)

    @property
    def way(self) -> str:
        """How ids are found: `native` or `python`."""
        return "python" if self._native is None else "native"

    def __call__(self, sentences: Sequence[str], *, keep_unknown: bool = False) -> Ragged:
        """Returns the ids of each sentence's words in order.

        A word that is not in the vocabulary has the id of its bucket. Without buckets it is left
        out, or has the id -1 if `keep_unknown`.
        """
        if self._native is None:
            return self._by_sentence(sentences, keep_unknown)
        return _by_kernel(self._table, sentences, self.unknown_buckets, int(keep_unknown))

    @cached_property
    def _table(self) -> Any:
        """The kernel's table of words."""
        return self._native.Table(self.vocabulary.text.encode(), classes())

    def _by_sentence(self, sentences: Sequence[str], keep_unknown: bool) -> Ragged:
        index = self.vocabulary.index
        tokens = [tokens_of(text) for text in sentences]
        flat = [token for row in tokens for token in row]
        ids = np.fromiter((index.get(token, -1) for token in flat), np.int32, len(flat))
        missing = ids < 0
        if self.unknown_buckets:
            unknown = [flat[at] for at in np.flatnonzero(missing)]
            ids[missing] = word_buckets(unknown, self.unknown_buckets) + len(self.vocabulary)
        batch = Ragged(ids, offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))))
        return batch if keep_unknown or self.unknown_buckets else batch.only(~missing)


_ADDED = 2
"""What becomes of a word that a kernel's table lacks: it is added."""


class NumberedWords:
    """Numbers the words of sentences from 0 on in the order in which they first come.

    >>> words = NumberedWords()
    >>> words(["It is.", "Is it?"]).ids.tolist()
    [0, 1, 2, 1, 0, 3]
    >>> words.since(2)
    ['.', '?']
    """

    def __init__(self) -> None:
        native = kernel("text._words")
        self._table = None if native is None else native.Table(b"", classes())
        self._numbers: dict[str, int] = {}

    def __call__(self, sentences: Sequence[str]) -> Ragged:
        """Returns the numbers of each sentence's words in order."""
        if self._table is not None:
            return _by_kernel(self._table, sentences, 0, _ADDED)
        tokens, numbers = [tokens_of(text) for text in sentences], self._numbers
        flat = [numbers.setdefault(token, len(numbers)) for row in tokens for token in row]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        return Ragged(np.array(flat, np.int32), offsets_of(lengths))

    def since(self, number: int) -> list[str]:
        """Returns the words from a number on, in their order."""
        if self._table is None:
            return list(islice(self._numbers, number, None))
        return [word.decode() for word in self._table.since(number).split(b"\n")[:-1]]


def _by_kernel(table: Any, sentences: Sequence[str], buckets: int, unknown: int) -> Ragged:
    texts = tuple([text if text.isascii() else normalize_text(text) for text in sentences])
    ids, offsets = table.ids(texts, buckets, unknown)
    return Ragged(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64))
