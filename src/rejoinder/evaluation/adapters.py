"""Anybody's encoder as one that `evaluate` takes: functions, sentence-transformers, files."""

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
from rejoinder.files.hashed import sha256_of, sha256_of_file
from rejoinder.protocols import Embeddings, Encodes


class Called:
    """A function from sentences to vectors."""

    def __init__(self, encode: Callable[[Sequence[str]], Any], name: str) -> None:
        self._encode = encode
        self._name = name
        self._source = _source_of(encode)

    def describe(self) -> dict[str, object]:
        """Who this is."""
        return {"name": self._name, **self._source}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """What the function returns, as an array where it makes one; the caller checks it."""
        returned: Embeddings = self._encode(list(sentences))
        try:
            return np.asarray(returned)
        except (ValueError, TypeError, RuntimeError):  # ragged rows, tensors on a device
            return returned


def _source_of(function: object) -> dict[str, str]:
    """The SHA-256 of the file that a function stands in: another one is another encoder."""
    try:
        file = inspect.getsourcefile(function)  # type: ignore[arg-type]
        return {} if file is None else {"source_sha256": sha256_of_file(Path(file))}
    except (OSError, TypeError):  # of a library in C, of an object that is called
        return {}


def open_function(place: str) -> Encodes:
    """The function, or the object with `encode`, that `MODULE:NAME` names.

    Modules of the working folder are found too. A class is called without arguments.

    Raises:
        InputError: there is none.
    """
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"py:{place} names no function: {error}; write py:MODULE:NAME.") from None
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise InputError(f"py:{place}: the module {module} {raised(error)}") from error
    finally:
        sys.path.pop(0)
    if isinstance(found, type):
        found = call(found, who=f"py:{place}: the class {name}")
    if hasattr(found, "encode"):
        encoder: Encodes = found
        return encoder
    if not callable(found):
        raise InputError(
            f"py:{place} is an object of type {type(found).__name__}; a function, or an object "
            "with a method encode, is needed."
        )
    return Called(found, f"py:{place}")


class SentenceTransformers:
    """A model of the sentence-transformers library."""

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
        """Who this is, with the longest text that it reads."""
        return {"name": f"st:{self._name}", "max_tokens": self._model.max_seq_length}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, D) float32."""
        return np.asarray(self._model.encode(list(sentences), show_progress_bar=False), np.float32)


class StoredVectors:
    """Vectors by text, from a file with the columns `text` and `embedding`."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        try:
            content = path.read_bytes()
            json_lines = path.suffix in (".jsonl", ".ndjson")
            frame = pl.read_ndjson(content) if json_lines else pl.read_parquet(content)
            texts = frame.get_column("text").to_list()
            rows = frame.get_column("embedding").to_list()
            self._vectors = np.array(rows, np.float32)
        except (OSError, pl.exceptions.PolarsError, ValueError) as error:
            raise InputError(
                f"{path} can't be read as vectors by text: {str(error).splitlines()[0]}; Parquet "
                "or JSON lines with the columns text and embedding are needed."
            ) from None
        self._places = {text: row for row, text in enumerate(texts)}
        self._path = path
        self._sha256 = sha256_of(content)

    def describe(self) -> dict[str, object]:
        """Who this is."""
        dim = int(self._vectors.shape[1])
        return {"name": f"vectors:{self._path.name}", "dim": dim, "sha256": self._sha256}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, D) float32.

        Raises:
            InputError: a sentence has no vector.
        """
        missing = [text for text in sentences if text not in self._places]
        if missing:
            raise InputError(
                f"{self._path} has no vector for {len(missing)} of {len(sentences)} sentences, "
                f"the first {missing[0][:60]!r}."
            )
        return self._vectors[[self._places[text] for text in sentences]]
