"""What suggestions need of the messages of an index, kept in a file in its folder.

The file has which message each reply answers, and how suggestions did on held-out threads. It is
used as long as `index.json`, which has the hashes of all texts and of the model, is the same.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from rejoinder.api.collection import Model, encoder_of
from rejoinder.api.past_replies import PastReplies
from rejoinder.errors import RejoinderError
from rejoinder.index.folder import TextIndex
from rejoinder.index.manifest import FILE as INDEX
from rejoinder.index.whole import WholeIndex
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.suggested import Tried
from rejoinder.inference.suggestions import Confidence
from rejoinder.io.files.atomic import write_bytes
from rejoinder.io.files.hashed import sha256_of, sha256_of_file
from rejoinder.io.formats.tensor_files import UNREADABLE

FILE = "suggest.safetensors"
_TRIED = ("chances", "right", "same_words")
_FORMAT_VERSION = 1
"""Also counts changes of what suggestions are tried by."""


class _Messages(WholeIndex):
    """The messages of an index, and its model, which is opened when it is first used."""

    def __init__(self, opened: TextIndex, encoder: Model, threads: int | None) -> None:
        super().__init__(opened)
        self.name = str(opened.folder)
        """The path."""
        self._opened, self._encoder, self._threads = opened, encoder, threads

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The model of the embeddings.

        Raises:
            InputError: another model was given, or the index does not say where its model is.
            ModelError: it can't be loaded.
        """
        return encoder_of(self._opened, self._encoder, self._threads)


def keep(index: Path, past: PastReplies, tried: Tried | None) -> None:
    """Writes the past of an index, unless its folder can't be written.

    `tried` is None if too few messages could be held out.
    """
    tensors: dict[str, NDArray[Any]] = {
        "asked": past.asked.astype(np.int32),
        "replied": past.replied.astype(np.int32),
        "parts": past.parts,
    }
    facts: dict[str, Any] = {}
    if tried is not None:
        tensors |= {name: getattr(tried, name) for name in _TRIED}
        facts = {"confidence": asdict(tried.confidence), "fitted_on": tried.fitted_on}
    facts |= _stamp(index, tensors)
    with suppress(RejoinderError):  # otherwise it is found again the next time
        write_bytes(index / FILE, save(tensors, {"facts": json.dumps(facts)}))


def read_kept(
    index: Path, encoder: Model = None, threads: int | None = None
) -> tuple[PastReplies, Tried | None] | None:
    """Returns what `keep` wrote; None if it did not, or if the index has changed since.

    Raises:
        InputError: the index is damaged.
    """
    try:
        with safe_open(index / FILE, "np") as file:
            facts = json.loads(file.metadata()["facts"])
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not _stamp(index, found).items() <= facts.items():
            return None
        asked, replied = (found[name].astype(np.int64) for name in ("asked", "replied"))
        parts, tried = found["parts"], None
        if "confidence" in facts:
            confidence = Confidence(**facts["confidence"])
            tried = Tried(confidence, facts["fitted_on"], *(found[name] for name in _TRIED))
    except UNREADABLE:
        return None
    return PastReplies(_Messages(TextIndex(index), encoder, threads), asked, replied, parts), tried


def _stamp(index: Path, tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Returns what must be the same for the file to be used."""
    contents = [tensors[name].tobytes() for name in sorted(tensors)]
    return {
        "format_version": _FORMAT_VERSION,
        "index": sha256_of_file(index / INDEX),
        "sha256": sha256_of(*contents),
    }
