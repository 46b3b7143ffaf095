"""Baseline encoders by name: `bow`, `average:FILE` and so on.

To add a baseline, write a module with a class that encodes (`rejoinder.protocols`) and add a line
to `BASELINES`. A class that reads a file has a class method `load(path)`.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from rejoinder.errors import InputError, nearest
from rejoinder.protocols import Encodes


class Baseline(NamedTuple):
    """A module of this package, imported when the baseline is used, and the name of its class."""

    module: str
    encoder: str
    reads_file: bool = False


BASELINES: Mapping[str, Baseline] = {
    "bow": Baseline("words", "BagOfWords"),
    "tfidf": Baseline("words", "TfIdf"),
    "random": Baseline("words", "RandomVectors"),
    "average": Baseline("vectors", "Averaged", reads_file=True),
    "sif": Baseline("vectors", "Sif", reads_file=True),
    "soft-cosine": Baseline("vectors", "SoftCosine", reads_file=True),
    "doc2vec": Baseline("doc2vec", "ParagraphVectors", reads_file=True),
}


def open_baseline(name: str) -> Encodes:
    """Returns the baseline `name`: a key of `BASELINES`, followed by `:FILE` if it reads a file.

    Raises:
        InputError: the baseline is unknown, or its file is missing or damaged.
        MissingExtraError: a library that it needs is not installed.
    """
    kind, _, file = name.partition(":")
    if kind not in BASELINES:
        raise InputError(f"baseline {kind!r}: {nearest(kind, BASELINES)}.")
    baseline = BASELINES[kind]
    if baseline.reads_file and not file:
        raise InputError(f"baseline:{kind} needs a file; write baseline:{kind}:FILE.")
    encoder = getattr(import_module(f"{__name__}.{baseline.module}"), baseline.encoder)
    opened: Encodes = encoder.load(Path(file)) if baseline.reads_file else encoder()
    return opened
