"""Encoders to compare with, by name: `baseline:bow`, `baseline:average:FILE` and so on."""

from collections.abc import Callable
from pathlib import Path

from rejoinder.errors import InputError, nearest
from rejoinder.protocols import Encodes

NAMES = ("bow", "tfidf", "random", "average", "sif", "soft-cosine", "doc2vec")


def open_baseline(name: str) -> Encodes:
    """The baseline of a name, with its file behind a colon where it needs one.

    Raises:
        InputError: no such baseline, or its file is not named, not there or damaged.
        MissingExtraError: a library that it needs is not installed.
    """
    kind, _, file = name.partition(":")
    from rejoinder.evaluation.baselines.words import BagOfWords, RandomVectors, TfIdf

    plain: dict[str, Callable[[], Encodes]] = {
        "bow": BagOfWords,
        "tfidf": TfIdf,
        "random": RandomVectors,
    }
    if kind in plain:
        return plain[kind]()
    if kind not in NAMES:
        raise InputError(f"baseline {kind!r}: {nearest(kind, NAMES)}.")
    if not file:
        raise InputError(f"baseline:{kind} needs a file; write baseline:{kind}:FILE.")
    if kind == "doc2vec":
        from rejoinder.evaluation.baselines.doc2vec import ParagraphVectors

        return ParagraphVectors.load(Path(file))
    from rejoinder.evaluation.baselines.vectors import Averaged, Sif, SoftCosine, read_vectors

    vectors = read_vectors(Path(file))
    kinds: dict[str, Callable[[], Encodes]] = {
        "average": lambda: Averaged(vectors),
        "sif": lambda: Sif(vectors),
        "soft-cosine": lambda: SoftCosine(vectors),
    }
    return kinds[kind]()
