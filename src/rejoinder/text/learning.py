"""Learns the words that a model knows, in one pass over the texts, with Polars."""

from collections.abc import Iterable

import polars as pl

from rejoinder.errors import InputError
from rejoinder.text.columns import tokenize
from rejoinder.text.vocabulary import Vocabulary

_CHUNK = 100_000
_MOST_DISTINCT = 5_000_000


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
