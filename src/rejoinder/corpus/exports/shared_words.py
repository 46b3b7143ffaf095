"""The words that several authors used: a name or a password of one person is none of them."""

import polars as pl

from rejoinder.text.columns import as_series, tokenize

_CHUNK = 20_000
_MOST = 4_000_000
"""Pairs of a word and an author that are kept; beyond it, words of enough authors leave them."""


class SharedWords:
    """Collects words with their authors, in bounded memory for each word that is rare."""

    def __init__(self, least: int) -> None:
        """Collects words for `words`, which returns those of `least` authors or more."""
        self._least = least
        self._authors: list[str] = []
        self._texts: list[str] = []
        self._seen = pl.DataFrame(schema={"word": pl.String, "author": pl.UInt64})
        self._shared: set[str] = set()

    def add(self, author: str, text: str) -> None:
        """Adds the words of a text. Texts without an author count as one author's."""
        self._authors.append(author)
        self._texts.append(text)
        if len(self._texts) == _CHUNK:
            self._count()

    def words(self) -> list[str]:
        """Returns the words of at least so many authors, sorted."""
        self._count()
        self._move_shared()
        return sorted(self._shared)

    def _count(self) -> None:
        frame = pl.DataFrame(
            {
                "word": tokenize(as_series(self._texts)),
                "author": pl.Series(self._authors, dtype=pl.String).hash(),
            }
        )
        self._authors, self._texts = [], []
        fresh = frame.explode("word").drop_nulls().unique()
        self._seen = pl.concat([self._seen, fresh]).unique()
        if len(self._seen) > _MOST:
            self._move_shared()

    def _move_shared(self) -> None:
        counts = self._seen.group_by("word").agg(pl.len().alias("authors"))
        enough = counts.filter(pl.col("authors") >= self._least)
        self._shared.update(enough["word"])
        self._seen = self._seen.join(enough, on="word", how="anti")
