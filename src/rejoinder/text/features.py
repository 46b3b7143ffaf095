"""Sentences to ids, whole batches: what an encoder reads, and what is saved with a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import ModelError
from rejoinder.text.buckets import bigram_buckets, word_buckets
from rejoinder.text.normalize import RULES, UNICODE, as_series
from rejoinder.text.ragged import Ragged
from rejoinder.text.tokens import tokenize
from rejoinder.text.vocabulary import Vocabulary


class TextFeatures(Protocol):
    """Sentences to ids below `rows`."""

    @property
    def rows(self) -> int:
        """Number of different ids: the rows of an encoder's table."""
        ...

    def __call__(self, sentences: Sequence[str] | pl.Series) -> Ragged:
        """The ids of each sentence, in order; a sentence without known features has none."""
        ...

    def config(self) -> dict[str, object]:
        """Plain values for `config.json`, from which `load_features` finds its way back."""
        ...

    def save(self, folder: Path) -> list[str]:
        """Write the files that `load_features` reads; returns their names."""
        ...


@dataclass(frozen=True)
class WordFeatures:
    """Known words, buckets for unknown ones, and hashed bigrams of neighbouring known words.

    >>> features = WordFeatures(Vocabulary(("how", "are", "you")), buckets=10)
    >>> features(["Are you how?", "??"]).lengths.tolist()
    [5, 0]
    """

    vocabulary: Vocabulary
    buckets: int = 0
    """Bigram buckets; 0 for words alone. Bucket b is id `words + b`."""
    unknown_buckets: int = 0
    """Buckets of unknown words, by spelling; 0 to leave such words out. Bucket b is id
    `len(vocabulary) + b`."""

    @property
    def words(self) -> int:
        """Ids of words: the known ones and the buckets of the others."""
        return len(self.vocabulary) + self.unknown_buckets

    @property
    def rows(self) -> int:
        """Words and buckets."""
        return self.words + self.buckets

    def __call__(self, sentences: Sequence[str] | pl.Series) -> Ragged:
        """Each sentence's words in order, then its bigrams in order."""
        tokens = tokenize(as_series(sentences))
        lengths = tokens.list.len().to_numpy().astype(np.int64)
        # an empty list would be one null row of the flat column: such rows are left out
        flat = tokens.filter(pl.Series(lengths > 0)).explode()
        ids = self.vocabulary.ids(flat)
        owner = np.repeat(np.arange(len(tokens)), lengths)
        known = ids >= 0
        if self.unknown_buckets:
            words, word_owner = self._with_unknown(flat, ids, known), owner
        else:
            words, word_owner = ids[known], owner[known]
        if not self.buckets:
            return Ragged(words, _offsets(word_owner, len(tokens)))
        pairs = known[:-1] & known[1:] & (owner[:-1] == owner[1:])
        hashed = bigram_buckets(ids[:-1][pairs], ids[1:][pairs], self.buckets)
        return _interleave(
            Ragged(words, _offsets(word_owner, len(tokens))),
            Ragged(
                hashed + np.int32(self.words),
                _offsets(owner[:-1][pairs], len(tokens)),
            ),
        )

    def _with_unknown(
        self, tokens: pl.Series, ids: NDArray[np.int32], known: NDArray[np.bool_]
    ) -> NDArray[np.int32]:
        """`ids`, with buckets for the words that are not known."""
        hashed = word_buckets(tokens.filter(pl.Series(~known)), self.unknown_buckets)
        filled = ids.copy()
        filled[~known] = hashed + np.int32(len(self.vocabulary))
        return filled

    def config(self) -> dict[str, object]:
        """`kind`, the rules' number, the Unicode version that they are defined for, sizes."""
        return {
            "kind": "words",
            "rules": RULES,
            "unicode": UNICODE,
            "words": len(self.vocabulary),
            "bigram_buckets": self.buckets,
            "unknown_buckets": self.unknown_buckets,
        }

    def save(self, folder: Path) -> list[str]:
        """Write `vocabulary.txt`."""
        return [self.vocabulary.save(folder)]


def load_features(folder: Path, config: Mapping[str, object]) -> TextFeatures:
    """The features whose `config()` is given, from the files that `save` wrote into `folder`.

    Raises:
        ModelError: an unknown kind, other rules, or a vocabulary of another size.
    """
    kind, rules = config.get("kind"), config.get("rules")
    if rules != RULES or isinstance(rules, bool):
        raise ModelError(
            f"{folder} was made with text rules {rules!r}; this version knows rules {RULES}."
        )
    if kind == "subwords":
        from rejoinder.text.subwords import SubwordFeatures

        return SubwordFeatures.load(folder, config)
    if kind != "words":
        raise ModelError(f"{folder} has text of kind {kind!r}; known: 'subwords', 'words'.")
    vocabulary = Vocabulary.load(folder)
    if len(vocabulary) != config.get("words"):
        raise ModelError(
            f"{folder} lists {len(vocabulary)} words where its config says "
            f"{config.get('words')!r}; the folder is damaged."
        )
    return WordFeatures(
        vocabulary,
        _size(folder, config, "bigram_buckets"),
        _size(folder, {"unknown_buckets": 0, **config}, "unknown_buckets"),
    )


def _size(folder: Path, config: Mapping[str, object], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ModelError(f"{folder} has {name} {value!r}; a number >= 0 is needed.")
    return value


def _offsets(owner: np.ndarray, sentences: int) -> np.ndarray:
    """(sentences + 1,) int64, from the sentence that each id belongs to."""
    offsets = np.zeros(sentences + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=sentences), out=offsets[1:])
    return offsets


def _interleave(first: Ragged, second: Ragged) -> Ragged:
    """Sentence by sentence, the ids of `first` and then those of `second`."""
    ids = np.empty(len(first.ids) + len(second.ids), np.int32)
    ids[np.arange(len(first.ids)) + np.repeat(second.offsets[:-1], first.lengths)] = first.ids
    ids[np.arange(len(second.ids)) + np.repeat(first.offsets[1:], second.lengths)] = second.ids
    return Ragged(ids, first.offsets + second.offsets)
