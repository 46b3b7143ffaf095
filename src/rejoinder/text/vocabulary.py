"""The words that a model knows: learned in one pass over the texts, saved as a word per line."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.errors import InputError, ModelError
from rejoinder.files.atomic import write_text
from rejoinder.text.normalize import tokenize

FILE = "vocabulary.txt"
_CHUNK = 100_000
_MOST_DISTINCT = 5_000_000
_FEW = 2_000


@dataclass(frozen=True)
class Vocabulary:
    """Words by id, most frequent first.

    >>> Vocabulary(("how", "are", "you")).ids(pl.Series(["you", "there", "how"])).tolist()
    [2, -1, 0]
    """

    words: tuple[str, ...]

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(list(self.words))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, tokens: pl.Series) -> NDArray[np.int32]:
        """Returns (N,) int32, the id of each token, -1 for an unknown word."""
        if len(tokens) < _FEW:  # looking up a column takes milliseconds, however short it is
            index = self._index
            return np.array([index.get(token, -1) for token in tokens], np.int32)
        known = tokens.cast(self._enum, strict=False).to_physical()
        return known.cast(pl.Int32).fill_null(-1).to_numpy()

    def save(self, folder: Path) -> str:
        """Writes `vocabulary.txt` into `folder` and returns the name of the file."""
        write_text(folder / FILE, "".join(f"{word}\n" for word in self.words))
        return FILE

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Loads the file that `save` wrote.

        Raises:
            ModelError: the file is missing, not UTF-8, or names a word twice.
        """
        path = folder / FILE
        try:
            words = path.read_text("utf-8").split("\n")
        except FileNotFoundError:
            raise ModelError(f"{path} is not there; a words model needs it.") from None
        except UnicodeDecodeError as error:
            raise ModelError(f"{path} is not UTF-8 text ({error}); the file is damaged.") from None
        except OSError as error:
            raise ModelError(f"{path} can't be read: {error.strerror}.") from None
        if words.pop() != "" or "" in words:
            raise ModelError(f"{path} is cut short or has empty lines; the file is damaged.")
        if len(set(words)) != len(words):
            raise ModelError(f"{path} names a word twice; the file is damaged.")
        return cls(tuple(words))


def learn_vocabulary(
    texts: Iterable[pl.Series], *, max_words: int, min_count: int
) -> tuple[Vocabulary, int]:
    """Learns the most frequent words of `texts`, ordered by count and then by code points.

    Words seen less often than `min_count` are left out. Memory is bounded: beyond five million
    distinct words the rarest so far are forgotten. This only affects words seen a handful of times
    in corpora of billions.

    Returns:
        The vocabulary, and the number of tokens counted.

    Raises:
        InputError: no word is frequent enough.
    """
    counts: pl.DataFrame = pl.DataFrame(schema={"word": pl.String, "count": pl.Int64})
    total = 0
    for text in texts:
        for start in range(0, len(text), _CHUNK):
            words = tokenize(text.slice(start, _CHUNK)).explode().drop_nulls().alias("word")
            total += len(words)
            fresh = words.value_counts(name="count").with_columns(pl.col("count").cast(pl.Int64))
            counts = pl.concat([counts, fresh]).group_by("word").agg(pl.col("count").sum())
            threshold = 1
            while len(counts) > _MOST_DISTINCT:
                threshold += 1
                counts = counts.filter(pl.col("count") >= threshold)
    kept = counts.filter(pl.col("count") >= min_count).sort(
        ["count", "word"], descending=[True, False]
    )
    if not len(kept):
        raise InputError(
            f"no word occurs {min_count} times in {total} tokens; lower text.min_count or give "
            "more pairs."
        )
    return Vocabulary(tuple(kept.head(max_words).get_column("word"))), total
