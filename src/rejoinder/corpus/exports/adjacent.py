"""Which message a message answers where nothing says so: the one before it by another author."""

import polars as pl

from rejoinder.corpus.exports.base import Message

_CHUNK = 100_000

_CONVERSATION = ("source", "thread")


def adjacent(messages: pl.DataFrame, within: float) -> pl.DataFrame:
    """Returns `parent` and `thread` of messages that answer none that is known.

    Args:
        messages: (N rows,) the columns id, author, source, thread (or null), time (seconds, or
            null) and linked (whether it is known what the message answers).
        within: most seconds between a message and the one before it. In a thread, which a topic or
            a ticket is, too, any time may pass.

    Returns:
        (N rows,) in the same order. `parent`: the message before it in its thread, or in its source
        if it has none, unless that is of the same author, earlier than `within`, or `linked` is
        true. `thread`: its thread, or else the first message since the last such pause; null where
        `linked` is true.

    >>> times = [0.0, 5.0, 9.0, 999.0]
    >>> said = pl.DataFrame({"id": list("abcd"), "author": list("AABB"), "time": times})
    >>> said = said.with_columns(source=pl.lit("x"), thread=None, linked=pl.lit(False))
    >>> adjacent(said, within=60).rows()
    [(None, 'a'), (None, 'a'), ('b', 'a'), (None, 'd')]
    >>> adjacent(said.with_columns(thread=pl.Series(["7", "8", "8", "7"])), within=60).rows()
    [(None, '7'), (None, '8'), ('b', '8'), ('a', '7')]
    """
    ordered = messages.with_columns(pl.col("thread").cast(pl.String)).with_row_index("row")
    ordered = ordered.sort(*_CONVERSATION, "time", "row", nulls_last=True)
    before = pl.all().shift().over(_CONVERSATION)
    ordered = ordered.with_columns(before.name.prefix("before_"))
    pause = (pl.col("time") - pl.col("before_time")).fill_null(0.0) > within
    begins = pl.col("before_id").is_null() | (pause & pl.col("thread").is_null())
    ordered = ordered.with_columns(
        parent=pl.when(~begins & (pl.col("author") != pl.col("before_author"))).then("before_id"),
        thread=pl.coalesce("thread", pl.when(begins).then("id").forward_fill()),
    )
    ordered = ordered.with_columns(
        pl.when(~pl.col("linked")).then(name).alias(name) for name in ("parent", "thread")
    )
    return ordered.sort("row").select("parent", "thread")


class Keys:
    """Everything of messages but their texts, in compact columns."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._rows: list[tuple[str, str, str, str | None, float | None, bool]] = []

    def add(self, message: Message) -> None:
        """Adds a message."""
        linked = message.parent is not None
        self._rows.append(
            (message.id, message.author, message.source, message.thread, message.time, linked)
        )
        if len(self._rows) == _CHUNK:
            self._flush()

    def _flush(self) -> None:
        schema = {
            **dict.fromkeys(("id", "author", "source", "thread"), pl.String),
            "time": pl.Float64,
            "linked": pl.Boolean,
        }
        self._frames.append(pl.DataFrame(self._rows, schema=schema, orient="row"))
        self._rows = []

    def frame(self) -> pl.DataFrame:
        """Returns the columns of all messages: id, author, source, thread, time, linked."""
        self._flush()
        return pl.concat(self._frames)
