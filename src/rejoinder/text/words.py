"""Ids of the words of sentences: a kernel in C (`text/_words.c`), or the same in Python.

The kernel encodes sentences in 60 % of the time; `notebook/decisions/kernels.md` has the figures.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels import kernel
from rejoinder.text.normalize import (
    classes,
    find_tokens,
    normalize_cased,
    normalize_text,
    tokens_of,
)
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.readings import Marks, Readings, Spelling, marks_of
from rejoinder.text.vocabulary import Remembered, Vocabulary, word_buckets


class UnknownWords:
    """Finds the ids of words that a vocabulary lacks, and keeps those of many."""

    def __init__(self, vocabulary: Vocabulary, buckets: int = 0, *, spelling: bool = False) -> None:
        """Creates the ids of `buckets` buckets, which follow those of the vocabulary.

        With `spelling`, a misspelt word of the vocabulary has the id of the right one.
        """
        self.vocabulary, self.buckets, self.spelling = vocabulary, buckets, spelling
        self._ids = Remembered(self._find)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(UnknownWords, self.vocabulary, self.buckets, spelling=self.spelling)
        return made, ()

    def __call__(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Returns the id of each word, (N,) int32; -1 where there is none."""
        return np.array(self._ids(words), np.int32)

    def _find(self, words: list[str]) -> list[int]:
        ids = self._known(words) if self.spelling else np.full(len(words), -1, np.int32)
        if self.buckets:
            rest = np.flatnonzero(ids < 0)
            hashed = word_buckets([words[at] for at in rest.tolist()], self.buckets)
            ids[rest] = hashed + len(self.vocabulary)
        found: list[int] = ids.tolist()
        return found

    @cached_property
    def _known(self) -> Spelling:
        return Spelling(self.vocabulary.words)


class WordIds:
    """Turns sentences into the ids of their words."""

    def __init__(
        self, vocabulary: Vocabulary, unknown: UnknownWords, readings: Readings | None = None
    ) -> None:
        """Creates the ids of a vocabulary, and of words not in it as `unknown` says.

        With `readings`, words first have the ids of those that they stand for.
        """
        self.vocabulary, self.unknown, self.readings = vocabulary, unknown, readings
        self._normalize = normalize_text if readings is None else normalize_cased
        self._native = kernel("text._words")

    def __reduce__(self) -> tuple[Any, ...]:
        # the kernel's table can't be copied
        return WordIds, (self.vocabulary, self.unknown, self.readings)

    @property
    def way(self) -> str:
        """How ids are found: `native` or `python`."""
        return "python" if self._native is None else "native"

    def __call__(self, sentences: Sequence[str], *, keep_unknown: bool = False) -> Ragged:
        """Returns the ids of each sentence's words in order.

        A word that is not in the vocabulary has the id that `unknown` gives. Without one it is left
        out, or has the id -1 if `keep_unknown`.
        """
        batch, without, _ = self.read(sentences)
        return batch if keep_unknown or not without else batch.only(batch.ids >= 0)

    def read(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], NDArray[np.bool_] | None]:
        """Returns the ids of each sentence's words in order, and the words with ids below 0.

        Then which tokens have an id; None: each has one.
        """
        read = self._by_sentence if self._native is None else self._by_kernel
        batch, words, marks, parted = read(sentences)
        kept = None
        if words:
            unknown = batch.ids < 0
            ids = np.full(len(words), -1, np.int32)
            if self.readings is not None:
                ids = self.readings.unknown(batch, words, marks)
            rest = np.flatnonzero(ids == -1)
            if len(rest):
                ids[rest] = self.unknown([words[at] for at in rest.tolist()])
            batch.ids[unknown] = ids
            words = [words[at] for at in np.flatnonzero(ids < 0).tolist()]
        if parted and self.readings is not None:
            batch, kept = self.readings.joined(batch)
        return batch, words, kept

    @cached_property
    def _table(self) -> Any:
        """The kernel's table of words."""
        read_as = () if self.readings is None else (self.readings.table.tobytes(),)
        return self._native.Table(self.vocabulary.text.encode(), classes(), *read_as)

    def _by_kernel(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], Marks, bool]:
        """Returns ids and the words that the vocabulary lacks, whose ids are -1.

        Then what their texts tell of these, and whether words may be parted.
        """
        batch, rest, marks, parted = _numbered(
            self._table, sentences, self._normalize, adding=False
        )
        return batch, rest.decode().split("\n")[:-1], np.frombuffer(marks, np.uint8), bool(parted)

    def _by_sentence(self, sentences: Sequence[str]) -> tuple[Ragged, list[str], Marks, bool]:
        index, readings = self.vocabulary.index, self.readings
        texts = [self._normalize(text) for text in sentences]
        tokens = [list(find_tokens(text.lower())) for text in texts]
        flat = [token[0] for row in tokens for token in row]
        ids = np.fromiter((index.get(token, -1) for token in flat), np.int32, len(flat))
        batch = Ragged(ids, offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))))
        words = [flat[at] for at in np.flatnonzero(ids < 0).tolist()]
        if readings is None:
            return batch, words, np.zeros(len(words), np.uint8), False
        marks = [
            marks_of(text, row, (batch[number] < 0).tolist())
            for number, (text, row) in enumerate(zip(texts, tokens, strict=True))
        ]
        read_as = np.where(ids < 0, ids, readings.table[ids])
        parted = (read_as < 0) & (ids >= 0)
        ids = np.where(parted, ~read_as, read_as)
        all_marks = np.concatenate([np.empty(0, np.uint8), *marks])
        return Ragged(ids, batch.offsets), words, all_marks, bool(parted.any())


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
            return _numbered(self._table, sentences, normalize_text, adding=True)[0]
        tokens, numbers = [tokens_of(text) for text in sentences], self._numbers
        flat = [numbers.setdefault(token, len(numbers)) for row in tokens for token in row]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        return Ragged(np.array(flat, np.int32), offsets_of(lengths))

    def since(self, number: int) -> list[str]:
        """Returns the words from a number on, in their order."""
        if self._table is None:
            return list(islice(self._numbers, number, None))
        return [word.decode() for word in self._table.since(number).split(b"\n")[:-1]]


def _numbered(
    table: Any, sentences: Sequence[str], normalize: Callable[[str], str], *, adding: bool
) -> tuple[Ragged, bytes, bytes, int]:
    """Returns ids by a kernel's table, and what it tells of the unknown words, whose ids are -1."""
    texts = tuple([text if text.isascii() else normalize(text) for text in sentences])
    ids, offsets, *rest = table.ids(texts, adding)
    return Ragged(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)), *rest
