"""The words that several authors used: a name or a password of one person is none of them."""

from pathlib import Path

import duckdb
import polars as pl

from rejoinder.text.columns import as_series, tokenize

_CHUNK = 2_000_000
"""Characters of texts that are counted at a time, about 20,000 messages of a chat."""
_MEMORY = "300MB"
_QUERY = """SELECT word FROM (SELECT DISTINCT word, author FROM read_parquet('{files}'))
    GROUP BY word HAVING count(*) >= {least}"""


class SharedWords:
    """Collects words with their authors: frequent ones in memory, the others on disk."""

    def __init__(self, least: int, folder: Path) -> None:
        """Collects words for `words`, which returns those of `least` authors or more.

        `folder` is made, for what does not stay in memory.
        """
        self._least = least
        self._folder = folder
        self._authors: list[str] = []
        self._texts: list[str] = []
        self._shared = pl.DataFrame(schema={"word": pl.String})
        self._chars = 0
        self._files = 0
        folder.mkdir()

    def add(self, author: str, text: str) -> None:
        """Adds the words of a text. Texts without an author count as one author's."""
        self._authors.append(author)
        self._texts.append(text)
        self._chars += len(text)
        if self._chars >= _CHUNK:
            self._count()

    def words(self) -> list[str]:
        """Returns the words of at least so many authors, sorted."""
        self._count()
        found = set(self._shared.get_column("word"))
        if self._files:
            files = str(self._folder / "*.parquet").replace("'", "''")
            spill = str(self._folder / "spill")
            with duckdb.connect(
                config={"memory_limit": _MEMORY, "temp_directory": spill}
            ) as database:
                rows = database.execute(_QUERY.format(files=files, least=self._least)).fetchall()
            found.update(word for (word,) in rows)
        return sorted(found)

    def _count(self) -> None:
        """Keeps the words that enough authors used in these texts, and writes the others."""
        frame = pl.DataFrame(
            {
                "word": tokenize(as_series(self._texts)),
                "author": pl.Series(self._authors, dtype=pl.String).hash(),
            }
        )
        self._authors, self._texts, self._chars = [], [], 0
        pairs = frame.explode("word").drop_nulls().unique()
        pairs = pairs.join(self._shared, on="word", how="anti")
        counts = pairs.group_by("word").agg(pl.len().alias("authors"))
        enough = counts.filter(pl.col("authors") >= self._least).select("word")
        self._shared = pl.concat([self._shared, enough])
        rest = pairs.join(enough, on="word", how="anti")
        if len(rest):
            self._write(rest, self._folder / f"{self._files}.parquet")

    def _write(self, pairs: pl.DataFrame, path: Path) -> None:
        pairs.write_parquet(path, compression="zstd", compression_level=1)
        self._files += 1
