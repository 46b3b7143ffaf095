"""Strings to tokens: words with their inner apostrophes, numbers, single other characters."""

import polars as pl

from rejoinder.text.normalize import normalize

PATTERN = r"[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|\p{Nd}+|[^\s\p{L}\p{M}\p{Nd}]"
"""A token, on normalised text. White space only separates."""

_ROWS = 32_768


def tokenize(sentences: pl.Series) -> pl.Series:
    """The tokens of each sentence: a column of lists of strings, one list a sentence.

    >>> tokenize(pl.Series(["Don't panic, it's 42!", ""])).to_list()
    [["don't", 'panic', ',', "it's", '42', '!'], []]
    """
    # in slices of a frame the engine works on all cores; one long column would use a single one
    frames = [
        pl.LazyFrame({"text": normalize(sentences.slice(start, _ROWS))}).select(
            pl.col("text").str.extract_all(PATTERN)
        )
        for start in range(0, max(len(sentences), 1), _ROWS)
    ]
    parts = pl.collect_all(frames)
    return pl.concat(parts).to_series()
