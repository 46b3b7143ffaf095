"""Shared by the adapters: opens models and indexes by name or folder, and runs retrievers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rejoinder.errors import InputError
from rejoinder.index.hits import IndexedText, IndexHit
from rejoinder.index.indexing import Index
from rejoinder.index.state import Mode
from rejoinder.index.where import Where
from rejoinder.inference.encoder import SentenceEncoder


def encoder_of(model: str | Path | SentenceEncoder, threads: int | None) -> SentenceEncoder:
    """Returns an encoder unchanged, or loads a model; see `SentenceEncoder.load`.

    Raises:
        InputError: `threads` is given for an encoder, which has its own.
        InputError, ModelError: the model can't be loaded.
    """
    if not isinstance(model, SentenceEncoder):
        return SentenceEncoder.load(model, threads=threads)
    if threads is not None:
        raise InputError("threads is for loading a model; this encoder has its own.")
    return model


def index_of(index: str | Path | Index) -> Index:
    """Returns an index unchanged, or opens a folder of `rejoinder index`.

    Raises:
        InputError, ModelError: see `Index`.
    """
    return index if isinstance(index, Index) else Index.open(index)


class Settings(Protocol):
    """Settings of a retriever; see `Index.search`."""

    mode: Mode
    weight: float | None
    where: Where | None
    context: int


class Retrieved(NamedTuple):
    """A hit in the form for other libraries' documents and nodes."""

    id: str
    text: str
    score: float
    about: dict[str, Any]
    """Known facts about a message (`IndexHit.about`). With context also `before` and `after`:
    lists of the messages around it, each with `id`, `text` and known facts."""


def retrieve(
    index: Index, settings: Settings, queries: list[str], top_k: int
) -> list[list[Retrieved]]:
    """Returns for each query the `top_k` best hits, best first.

    Raises:
        InputError: see `Index.search`.
    """
    found = index.search(
        queries, top_k, mode=settings.mode, weight=settings.weight, where=settings.where,
        context=settings.context,
    )  # fmt: skip
    return [
        [Retrieved(hit.id, hit.text, hit.score, _about(hit, settings.context)) for hit in hits]
        for hits in found
    ]


def _about(hit: IndexHit, context: int) -> dict[str, Any]:
    around = {"before": _rows(hit.before), "after": _rows(hit.after)} if context else {}
    return {**hit.about, **around}


def _rows(messages: Sequence[IndexedText]) -> list[dict[str, Any]]:
    return [{"id": one.id, "text": one.text, **one.about} for one in messages]
