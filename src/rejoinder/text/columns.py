"""Normalises and tokenizes Polars columns of text, and learns vocabularies from them.

The rules are the same as in `text.normalize`; a test compares both on every assigned character.
"""

from collections.abc import Collection, Iterable

import polars as pl

from rejoinder.errors import InputError
from rejoinder.text.normalize import PATTERN, QUOTES, as_strings, fold_all
from rejoinder.text.vocabulary import Vocabulary

_ROWS = 32_768
_CHUNK = 100_000
_MOST_DISTINCT = 5_000_000


def as_series(sentences: Iterable[str]) -> pl.Series:
    """Returns sentences as a String column. Halves of surrogate pairs become U+FFFD.

    Raises:
        InputError: an element is not a string. The message names its index.
    """
    return pl.Series(as_strings(sentences), dtype=pl.String)


def normalize(sentences: pl.Series) -> pl.Series:
    """Normalises sentences: NFKC, straight quotes, lower case.

    >>> normalize(pl.Series(["It\u2019s \uff26\uff35\uff2c\uff2c", "\ufb01ne"])).to_list()
    ["it's full", 'fine']
    """
    # NFKC does not change ASCII, and nearly all conversation is ASCII
    non_ascii = (sentences.str.len_bytes() != sentences.str.len_chars()).arg_true()
    if len(non_ascii):
        normalized = sentences.gather(non_ascii).str.normalize("NFKC")
        normalized = normalized.str.replace_many(list(QUOTES), list(QUOTES.values()))
        sentences = sentences.clone().scatter(non_ascii, normalized)
    return sentences.str.to_lowercase()


def tokenize(sentences: pl.Series) -> pl.Series:
    """Returns the tokens of each sentence: a column of lists of strings.

    >>> tokenize(pl.Series(["Don't panic, it's 42!", ""])).to_list()
    [["don't", 'panic', ',', "it's", '42', '!'], []]
    """
    # Polars spreads several frames over all cores, but a long column uses only one core
    frames = [
        pl.LazyFrame({"text": normalize(sentences.slice(start, _ROWS))}).select(
            pl.col("text").str.extract_all(PATTERN)
        )
        for start in range(0, max(len(sentences), 1), _ROWS)
    ]
    parts = pl.collect_all(frames)
    return pl.concat(parts).to_series()


def learn_vocabulary(
    texts: Iterable[pl.Series],
    *,
    max_words: int,
    min_count: int,
    allowed: Collection[str] | None = None,
    fold: bool = False,
) -> tuple[Vocabulary, int]:
    """Learns the most frequent words of `texts`, ordered by count and then by code points.

    Words seen less often than `min_count` are left out, and words not in `allowed`. With `fold`,
    letters are read without their marks. Memory is bounded: beyond five million distinct words, the
    rarest so far are forgotten. This only affects words seen a handful of times in corpora of
    billions.

    Returns:
        The vocabulary, and the number of tokens counted.

    Raises:
        InputError: no word is frequent enough.
    """
    counts: pl.DataFrame = pl.DataFrame(schema={"word": pl.String, "count": pl.Int64})
    total = 0
    for text in texts:
        for start in range(0, len(text), _CHUNK):
            part = text.slice(start, _CHUNK)
            if fold:
                part = pl.Series(fold_all(part), dtype=pl.String)
            words = tokenize(part).explode().drop_nulls().alias("word")
            total += len(words)
            fresh = words.value_counts(name="count").with_columns(pl.col("count").cast(pl.Int64))
            counts = pl.concat([counts, fresh]).group_by("word").agg(pl.col("count").sum())
            threshold = 1
            while len(counts) > _MOST_DISTINCT:
                threshold += 1
                counts = counts.filter(pl.col("count") >= threshold)
    if allowed is not None:
        counts = counts.filter(pl.col("word").is_in(list(allowed)))
    kept = counts.filter(pl.col("count") >= min_count).sort(
        ["count", "word"], descending=[True, False]
    )
    if not len(kept):
        shared, remedy = "", "lower text.min_count"
        if allowed is not None:
            shared, remedy = " that enough authors used", "extract with a smaller `min_authors`"
        raise InputError(
            f"no word{shared} occurs {min_count} times in {total} tokens; {remedy} or give more "
            "pairs."
        )
    return Vocabulary(tuple(kept.head(max_words).get_column("word"))), total
