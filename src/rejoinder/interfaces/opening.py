"""What adapters are given, opened: models and indexes by name or folder."""

from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder


def encoder_of(model: str | Path | SentenceEncoder, threads: int | None) -> SentenceEncoder:
    """Returns an encoder as it is, or loads a model; see `SentenceEncoder.load`.

    Raises:
        InputError: `threads` is given for an encoder, which has its own.
        InputError, ModelError: the model can't be loaded.
    """
    if not isinstance(model, SentenceEncoder):
        return SentenceEncoder.load(model, threads=threads)
    if threads is not None:
        raise InputError("threads is for a model that is loaded; this encoder has its own.")
    return model


def index_of(index: str | Path | Index) -> Index:
    """Returns an index as it is, or opens a folder of `rejoinder index`.

    Raises:
        InputError, ModelError: see `Index`.
    """
    return index if isinstance(index, Index) else Index.open(index)
