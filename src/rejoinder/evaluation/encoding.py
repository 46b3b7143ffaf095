"""Calling an encoder that is not ours: each text once, and what comes back is checked."""

from collections.abc import Callable, Sequence

import numpy as np

from rejoinder.errors import InputError
from rejoinder.protocols import Embeddings


def encode_checked(
    encode: Callable[[Sequence[str]], Embeddings], sentences: Sequence[str], task: str
) -> Embeddings:
    """(N, D) float32 embeddings of `sentences`, each different one encoded once.

    Raises:
        InputError: the encoder returns another shape, or a value that is not finite; the message
            names the task and the sentence.
    """
    places: dict[str, int] = {}
    rows = [places.setdefault(sentence, len(places)) for sentence in sentences]
    embeddings = np.asarray(encode(list(places)), np.float32)
    if embeddings.ndim != 2 or len(embeddings) != len(places):
        raise InputError(
            f"{task}: the encoder returned an array of shape {embeddings.shape} for {len(places)} "
            "sentences; (N, D) is needed."
        )
    finite = np.isfinite(embeddings).all(axis=1)
    if not finite.all():
        wrong = int(np.argmin(finite))
        raise InputError(
            f"{task}: the embedding of sentence {rows.index(wrong)} "
            f"({list(places)[wrong][:60]!r}) is not finite."
        )
    return embeddings[rows]
