"""Makes encoders of functions, of sentence-transformers models, and of files of vectors."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rejoinder.errors import InputError
from rejoinder.evaluation.calls import TRACEBACK, call, raised
from rejoinder.io.files.hashed import sha256_of, sha256_of_file
from rejoinder.protocols import Embeddings, Encodes


class Called:
    """An encoder that calls a function from sentences to vectors."""

    def __init__(self, encode: Callable[[Sequence[str]], Any], name: str) -> None:
        self._encode = encode
        self._name = name
        self._source = _source_of(encode)

    def describe(self) -> dict[str, object]:
        """Returns the name, and the SHA-256 of the source file if there is one."""
        return {"name": self._name, **self._source}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns what the function returns, as an array if possible. The caller checks it."""
        returned: Embeddings = self._encode(list(sentences))
        try:
            return np.asarray(returned)
        except (ValueError, TypeError, RuntimeError):  # ragged rows, tensors on a device
            return returned


def _source_of(function: object) -> dict[str, str]:
    """Returns the SHA-256 of a function's source file: a changed file is another encoder."""
    try:
        file = inspect.getsourcefile(function)  # type: ignore[arg-type]
        return {} if file is None else {"source_sha256": sha256_of_file(Path(file))}
    except (OSError, TypeError):  # a function in C, or a callable object
        return {}


def open_function(reference: str) -> Encodes:
    """Returns the encoder that `MODULE:NAME` refers to: a function, or an object with `encode`.

    Modules of the working folder can be imported too. A class is called without arguments.

    Raises:
        InputError: the module or the name does not exist, or it is no encoder.
    """
    module, _, name = reference.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"py:{reference} names no function: {error}; write py:MODULE:NAME."
        ) from None
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
        """Returns the name, and the number of tokens that the model reads of a text."""
        return {"name": f"st:{self._name}", "max_tokens": self._model.max_seq_length}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 embeddings."""
        return np.asarray(self._model.encode(list(sentences), show_progress_bar=False), np.float32)


class StoredVectors:
    """An encoder that looks texts up in a file with the columns `text` and `embedding`."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        try:
            content = path.read_bytes()
            json_lines = path.suffix in (".jsonl", ".ndjson")
            frame = pl.read_ndjson(content) if json_lines else pl.read_parquet(content)
            texts = frame.get_column("text").to_list()
            rows = frame.get_column("embedding").to_list()
            self._vectors = np.array(rows, np.float32)
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
        self._index = {text: row for row, text in enumerate(texts)}
        self._path = path
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
