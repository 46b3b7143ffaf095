"""Opens what `cluster` and `dedupe` read, and shows their progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.messages import stream_entries, where_conditions
from rejoinder.cli.models import given_model
from rejoinder.cli.output import note_left_out
from rejoinder.cli.progress import Bar, encoding_bar

if TYPE_CHECKING:
    from rejoinder.conversations.collection import Collection
    from rejoinder.corpus.options import ExtractProgress

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File of texts, plain or compressed; - is standard input. Or an export of "
        "conversations, a folder of pairs, of which both sides are read, or an index.",
    ),
]
_SHORT = 20_000
"""Texts that are compared within seconds, without a bar."""


def open_source(
    source: str,
    *,
    model: str | None,
    model_sha256: str | None,
    columns: str | None,
    where: list[str] | None,
    **chosen: Any,
) -> "Collection":
    """Returns the texts of a SOURCE with their embeddings, as `chosen` for `open_collection`.

    Raises:
        RejoinderError: an option is not valid, or the source can't be read.
    """
    from rejoinder.conversations.collection import open_collection

    is_input = source == "-"
    with encoding_bar() as encoding:
        return open_collection(
            stream_entries(source, columns) if is_input else Path(source),
            given_model(model, model_sha256),
            columns=None if is_input else columns,
            where=where_conditions(where or []),
            progress=encoding,
            **chosen,
        )


@contextmanager
def working_on(opened: "Collection") -> Iterator["ExtractProgress"]:
    """Yields a function that shows stages of the work on texts, if those are many.

    Then it notes which messages of an export were left out.
    """
    with Bar("texts") as bar:

        def show(stage: str, done: int, total: int | None) -> None:
            if len(opened) > _SHORT or (total or 0) > _SHORT:
                bar.show(stage, done, total, "pairs" if stage == "scoring" else "texts")

        yield show
    note_left_out(opened.left_out)
