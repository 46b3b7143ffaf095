"""Which message a message answers where nothing says so: the one before it by another author."""

import polars as pl


def adjacent(messages: pl.DataFrame, within: float) -> pl.DataFrame:
    """Returns `parent` and `thread` of messages that answer none that is known.

    Args:
        messages: (N rows,) the columns id, author, source, time (seconds, or null) and linked
            (whether it is known what the message answers).
        within: most seconds between a message and the one before it.

    Returns:
        (N rows,) in the same order. `parent`: the message before it in its source, unless that is
        of the same author, earlier than `within`, or `linked` is true. `thread`: the first message
        since the last such pause, null where `linked` is true.

    >>> times = [0.0, 5.0, 9.0, 999.0]
    >>> said = pl.DataFrame({"id": list("abcd"), "author": list("AABB"), "time": times})
    >>> said = said.with_columns(source=pl.lit("x"), linked=pl.lit(False))
    >>> adjacent(said, within=60).rows()
    [(None, 'a'), (None, 'a'), ('b', 'a'), (None, 'd')]
    """
    ordered = messages.with_row_index("row").sort("source", "time", "row", nulls_last=True)
    before = pl.all().shift().over("source")
    ordered = ordered.with_columns(before.name.prefix("before_"))
    pause = (pl.col("time") - pl.col("before_time")).fill_null(0.0) > within
    begins = pl.col("before_id").is_null() | pause
    ordered = ordered.with_columns(
        parent=pl.when(~begins & (pl.col("author") != pl.col("before_author"))).then("before_id"),
        thread=pl.when(begins).then("id").forward_fill(),
    )
    ordered = ordered.with_columns(
        pl.when(~pl.col("linked")).then(name).alias(name) for name in ("parent", "thread")
    )
    return ordered.sort("row").select("parent", "thread")
