"""Baseline encoders by name: `bow`, `average:FILE` and so on.

To add a baseline, write a module with a class that encodes (`rejoinder.protocols`) and add a line
to `BASELINES`. A class that reads a file has a class method `load(path)`.
"""

from pathlib import Path
from typing import Any

from rejoinder.errors import InputError
from rejoinder.protocols import Encodes
from rejoinder.registry import Registry

BASELINES: Registry[Any] = Registry(
    "baseline",
    {
        "bow": f"{__name__}.words:BagOfWords",
        "tfidf": f"{__name__}.words:TfIdf",
        "random": f"{__name__}.words:RandomVectors",
        "average": f"{__name__}.vectors:Averaged",
        "sif": f"{__name__}.vectors:Sif",
        "soft-cosine": f"{__name__}.vectors:SoftCosine",
        "charagram": f"{__name__}.charagram:Charagram",
    },
)
"""Classes of encoders, each imported on first use."""


def open_baseline(name: str) -> Encodes:
    """Returns the baseline `name`: a key of `BASELINES`, followed by `:FILE` if it reads a file.

    Raises:
        InputError: the baseline is unknown, or its file is missing or damaged.
        MissingExtraError: a library that it needs is not installed.
    """
    kind, _, file = name.partition(":")
    encoder = BASELINES[kind]
    if not hasattr(encoder, "load"):
        opened: Encodes = encoder()
    elif file:
        opened = encoder.load(Path(file))
    else:
        raise InputError(f"baseline:{kind} needs a file; write baseline:{kind}:FILE.")
    return opened
