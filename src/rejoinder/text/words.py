"""Ids of the words of sentences, computed by the fastest of three ways that is there.

- `native`: a kernel in C (`text/_words.c`), for any number of sentences.
- `polars`: whole columns, for many sentences where Polars is installed and the kernel is not.
- `python`: a sentence at a time.

All give the same ids.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels import kernel
from rejoinder.text.buckets import word_buckets
from rejoinder.text.normalize import normalize_text, tokens_of
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.text.unicode_14 import classes
from rejoinder.text.vocabulary import Vocabulary

_MANY = 2_000
"""Number of sentences from which on starting Polars pays."""


class WordIds:
    """Turns sentences into the ids of their words."""

    def __init__(self, vocabulary: Vocabulary, unknown_buckets: int) -> None:
        """Creates the ids of a vocabulary and `unknown_buckets` buckets of words not in it."""
        self.vocabulary, self.unknown_buckets = vocabulary, unknown_buckets
        self._native = kernel("text._words")
        self._ways: dict[str, Callable[[Sequence[str], bool], Ragged]] = {
            "native": self._by_kernel,
            "polars": self._by_columns,
            "python": self._by_sentence,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return WordIds, (
            self.vocabulary,
            self.unknown_buckets,
        )  # the kernel's table can't be copied

    def way(self, sentences: int) -> str:
        """Returns the way that ids of so many sentences are computed: a word of the module's."""
        if self._native is not None:
            return "native"
        return "polars" if sentences >= _MANY and find_spec("polars") else "python"

    def __call__(
        self, sentences: Sequence[str], *, keep_unknown: bool = False, way: str | None = None
    ) -> Ragged:
        """Returns the ids of each sentence's words in order.

        A word that is not in the vocabulary has the id of its bucket. Without buckets it is left
        out, or has the id -1 if `keep_unknown`. `way` names the way to compute them.
        """
        return self._ways[way or self.way(len(sentences))](sentences, keep_unknown)

    def _by_kernel(self, sentences: Sequence[str], keep_unknown: bool) -> Ragged:
        texts = tuple([text if text.isascii() else normalize_text(text) for text in sentences])
        ids, offsets = self._table.ids(texts, self.unknown_buckets, keep_unknown)
        return Ragged(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64))

    @cached_property
    def _table(self) -> Any:
        """The kernel's table of words."""
        return kernel("text._words").Table(self.vocabulary.text.encode(), classes())

    def _by_columns(self, sentences: Sequence[str], keep_unknown: bool) -> Ragged:
        import polars as pl

        from rejoinder.text.columns import as_series, tokenize

        tokens = tokenize(as_series(sentences))
        lengths = tokens.list.len().to_numpy().astype(np.int64)
        # explode would turn an empty list into a null row
        flat = tokens.filter(pl.Series(lengths > 0)).explode()
        known = flat.cast(self._enum, strict=False).to_physical()
        ids = known.cast(pl.Int32).fill_null(-1).to_numpy()
        missing = ids < 0
        buckets = self._buckets(flat.filter(pl.Series(missing)).to_list())
        return self._placed(ids, missing, buckets, lengths, keep_unknown)

    @cached_property
    def _enum(self) -> Any:
        """The vocabulary as a type of Polars."""
        import polars as pl

        return pl.Enum(list(self.vocabulary.words))

    def _by_sentence(self, sentences: Sequence[str], keep_unknown: bool) -> Ragged:
        index = self.vocabulary.index
        tokens = [tokens_of(text) for text in sentences]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        flat = [token for row in tokens for token in row]
        ids = np.fromiter((index.get(token, -1) for token in flat), np.int32, len(flat))
        missing = ids < 0
        buckets = self._buckets([flat[at] for at in np.flatnonzero(missing)])
        return self._placed(ids, missing, buckets, lengths, keep_unknown)

    def _buckets(self, words: list[str]) -> NDArray[np.int32]:
        """Returns the ids of unknown words, -1 without buckets."""
        if not self.unknown_buckets:
            return np.full(len(words), -1, np.int32)
        return word_buckets(words, self.unknown_buckets) + np.int32(len(self.vocabulary))

    def _placed(
        self,
        ids: NDArray[np.int32],
        missing: NDArray[np.bool_],
        buckets: NDArray[np.int32],
        lengths: NDArray[np.int64],
        keep_unknown: bool,
    ) -> Ragged:
        """Returns the ids with those of unknown words in their places, or left out."""
        ids = ids.copy()
        ids[missing] = buckets
        batch = Ragged(ids, offsets_of(lengths))
        return batch if keep_unknown or self.unknown_buckets else batch.only(~missing)
