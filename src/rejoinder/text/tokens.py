"""Tokens of sentences: words with inner apostrophes, numbers, other single characters."""

import polars as pl

from rejoinder.text.normalize import normalize

PATTERN = r"[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|\p{Nd}+|[^\s\p{L}\p{M}\p{Nd}]"
"""Matches a token of normalised text. White space only separates tokens."""

_ROWS = 32_768


def tokenize(sentences: pl.Series) -> pl.Series:
    """Returns the tokens of each sentence: a column of lists of strings.

    >>> tokenize(pl.Series(["Don't panic, it's 42!", ""])).to_list()
    [["don't", 'panic', ',', "it's", '42', '!'], []]
    """
    # Polars spreads several frames over all cores, but one long column uses a single core
    frames = [
        pl.LazyFrame({"text": normalize(sentences.slice(start, _ROWS))}).select(
            pl.col("text").str.extract_all(PATTERN)
        )
        for start in range(0, max(len(sentences), 1), _ROWS)
    ]
    parts = pl.collect_all(frames)
    return pl.concat(parts).to_series()
