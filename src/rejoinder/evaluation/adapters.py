"""Encoders made from functions, sentence-transformers models and files of vectors."""

import importlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import TRACEBACK, call, raised
from rejoinder.io.files.hashed import sha256_of, sha256_of_folder
from rejoinder.protocols import Embeddings, Encodes


class Called:
    """An encoder that calls a function from sentences to vectors."""

    def __init__(self, encode: Callable[[Sequence[str]], Any], name: str) -> None:
        self._encode = encode
        self._name = name

    def describe(self) -> dict[str, object]:
        """Returns the name."""
        return {"name": self._name}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns what the function returns, as an array if possible. The caller checks it."""
        returned: Embeddings = self._encode(list(sentences))
        try:
            return np.asarray(returned)
        except (ValueError, TypeError, RuntimeError):  # ragged rows, tensors on a device
            return returned


def open_function(reference: str) -> Encodes:
    """Returns the encoder that `MODULE:NAME` refers to: a function, or an object with `encode`.

    Modules of the working folder can be imported too. A class is called without arguments.

    Raises:
        InputError: the module or the name does not exist, or it is not an encoder.
    """
    module, _, name = reference.partition(":")
    form = "write py:MODULE:NAME, such as py:my_module:encode."
    if not (module and name):
        raise InputError(f"py:{reference} is not a function; {form}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"py:{reference} is not a function: {error}; {form}") from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise InputError(f"py:{reference}: the module {module} {raised(error)}") from error
    finally:
        sys.path.pop(0)
    if isinstance(target, type):
        target = call(target, who=f"py:{reference}: the class {name}")
    if isinstance(target, Encodes):
        return target
    if not callable(target):
        raise InputError(
            f"py:{reference} is an object of type {type(target).__name__}; a function, or an "
            "object with a method encode, is needed."
        )
    return Called(target, f"py:{reference}")


class SentenceTransformers:
    """An encoder that calls a model of the sentence-transformers library."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise InputError(
                "st: needs sentence-transformers: pip install sentence-transformers."
            ) from None
        try:
            self._model: Any = SentenceTransformer(name)
        except (OSError, ValueError) as error:
            reason = str(error).split("\n", maxsplit=1)[0]
            raise InputError(f"st:{name} can't be loaded: {reason}.") from None
        self._name = name

    def describe(self) -> dict[str, object]:
        """Returns the name, the number of tokens read of a text, and a folder's SHA-256."""
        most = self._model.max_seq_length  # infinite for StaticEmbedding
        most = None if most == math.inf else most
        about = {"name": f"st:{self._name}", "max_tokens": most}
        folder = Path(self._name)
        return {**about, "sha256": sha256_of_folder(folder)} if folder.is_dir() else about

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings."""
        return np.asarray(self._model.encode(list(sentences), show_progress_bar=False), np.float32)


class StoredVectors:
    """An encoder that looks texts up in a file with the columns `text` and `embedding`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            content = self._path.read_bytes()
            json_lines = self._path.suffix in (".jsonl", ".ndjson")
            frame = pl.read_ndjson(content) if json_lines else pl.read_parquet(content)
            texts = frame.get_column("text").to_list()
            self._vectors = np.array(frame.get_column("embedding").to_list(), np.float32)
            if self._vectors.ndim != 2 or not self._vectors.size:
                raise ValueError(f"embeddings of shape {self._vectors.shape}")
        except (
            OSError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
            ValueError,
        ) as error:
            raise InputError(
                f"{path} can't be read as vectors by text: {str(error).splitlines()[0]}; Parquet "
                "or JSON lines with the columns text and embedding are needed."
            ) from None
        self._index: dict[str, int] = {}
        for row, text in enumerate(texts):
            first = self._index.setdefault(text, row)
            if first != row and not np.array_equal(self._vectors[first], self._vectors[row]):
                raise InputError(
                    f"{path}: rows {first} and {row} have two vectors of {text[:60]!r}; one for "
                    "each text is needed."
                )
        self._sha256 = sha256_of(content)

    def describe(self) -> dict[str, object]:
        """Returns the name of the file, the dimension and the SHA-256."""
        dim = int(self._vectors.shape[1])
        return {"name": f"vectors:{self._path.name}", "dim": dim, "sha256": self._sha256}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings.

        Raises:
            InputError: a sentence has no vector.
        """
        missing = [text for text in sentences if text not in self._index]
        if missing:
            raise InputError(
                f"{self._path} has no vector for {len(missing)} of {len(sentences)} sentences, "
                f"the first {missing[0][:60]!r}."
            )
        return self._vectors[[self._index[text] for text in sentences]]
