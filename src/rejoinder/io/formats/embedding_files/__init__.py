"""Files of embeddings, written a piece at a time: a format each for `.npy`, `.parquet`, `.jsonl`.

A new format is one module and one entry of `FORMATS`.
"""

from pathlib import Path

from rejoinder.errors import InputError
from rejoinder.io.formats.embedding_files.base import EmbeddingFormat as EmbeddingFormat
from rejoinder.io.formats.embedding_files.jsonl import JsonLines
from rejoinder.io.formats.embedding_files.npy import Npy
from rejoinder.io.formats.embedding_files.parquet import Parquet

FORMATS: dict[str, EmbeddingFormat] = {
    ".npy": Npy(),
    ".parquet": Parquet(),
    ".jsonl": JsonLines(),
}
"""Formats by the suffix of a file's name."""


def format_of(path: Path) -> EmbeddingFormat:
    """Returns the format of a file by the suffix of its name.

    Raises:
        InputError: there is no such format.
        MissingExtraError: the format needs a package that is not installed.
    """
    found = FORMATS.get(path.suffix)
    if found is None:
        raise InputError(f"{path}: the name must end in one of {', '.join(FORMATS)}.")
    found.require()
    return found
