"""Reads COCO's published features: pickles of strings and arrays, without running their code.

SentEval publishes `{train,valid,test}.pkl`, written by Python 2: a dict of `features` (a row per
image), `image_to_caption_ids` (ids by row) and `captions` (by id, with a `cleaned_caption`).

Converts files that are not published in SentEval's layout.
"""

import json
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.datasets.acquire.forms import judged_rows
from rejoinder.datasets.files import content_of
from rejoinder.datasets.sentence_pairs import SICK_COLUMNS
from rejoinder.errors import InputError
from rejoinder.io.files.storage import read_errors
from rejoinder.io.formats.tables import below_header

_FLOAT_TYPES = ("f2", "f4", "f8")


class _Dtype:
    """Stands in for numpy.dtype, so that no code of NumPy runs while a pickle is read."""

    def __init__(self, name: str, *_flags: Any) -> None:
        self.name, self.order = name, "<"

    def __setstate__(self, state: Sequence[Any]) -> None:
        self.order = "<" if state[1] == "|" else state[1]

    def resolved(self) -> np.dtype[Any]:
        if self.name not in _FLOAT_TYPES or self.order not in ("<", ">", "="):
            raise ValueError(
                f"an array of {self.name!r}; expected one of {', '.join(_FLOAT_TYPES)}"
            )
        return np.dtype(f"{self.order}{self.name}")


class _Array:
    """Stands in for numpy.ndarray."""

    def __init__(self, *_arguments: Any) -> None:
        self.value = np.zeros(0)

    def __setstate__(self, state: Sequence[Any]) -> None:
        _version, shape, dtype, by_columns, content = state
        data = content.encode("latin-1") if isinstance(content, str) else bytes(content)
        values = np.frombuffer(data, dtype.resolved())
        self.value = values.reshape(shape, order="F" if by_columns else "C")


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes in {encoding!r}; expected latin1")
    return text.encode("latin-1")


_ALLOWED: Mapping[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}
"""All functions that a pickle may call. dict, list, str, int and bytes need none."""


_PythonUnpickler: Any = pickle._Unpickler
"""The unpickler in Python. The one in C allocates as much as a damaged index asks for."""


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_PythonUnpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        """Returns an allowed function or class."""
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"it calls {module}.{name}; only dict, list, str, int, bytes and NumPy arrays are "
                "allowed"
            )
        return _ALLOWED[module, name]

    def load_build(self) -> None:
        """Sets the state of an array or its type, and of nothing else."""
        if not isinstance(self.stack[-2], _Array | _Dtype):
            raise pickle.UnpicklingError(f"it changes a {type(self.stack[-2]).__name__}")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


_REFUSED = (
    pickle.UnpicklingError, EOFError, MemoryError, RecursionError, ImportError, AssertionError,
    struct.error, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
)  # fmt: skip
"""The errors of reading a damaged, refused or foreign pickle."""


def read_coco_pickle(path: Path) -> tuple[NDArray[np.float32], list[list[str]]]:
    """Returns the features of images, (N, D) float32, and the captions of each."""
    try:
        with read_errors(path), path.open("rb") as file:
            tree = _Unpickler(file, encoding="latin-1").load()
        features = _matrix(tree["features"])
        return features, _captions(tree, len(features))
    except InputError:
        raise
    except _REFUSED as error:
        raise InputError(
            f"{path} is refused, cut or not one of SentEval's COCO files ({type(error).__name__}: "
            f"{error}). Expected a dict of features, image_to_caption_ids and captions."
        ) from None


def as_files(features: NDArray[np.float32], captions: list[list[str]]) -> tuple[bytes, bytes]:
    """Returns features as a safetensors file, and captions as a JSON file."""
    tree = {"format_version": 1, "captions": captions}
    return save({"features": features}), json.dumps(tree, ensure_ascii=False).encode("utf-8")


def _matrix(features: Any) -> NDArray[np.float32]:
    if not isinstance(features, _Array):
        rows = [features[row].value for row in range(len(features))]
        matrix = np.stack(rows) if rows else np.zeros((0, 0))
    else:
        matrix = features.value
    if matrix.ndim != 2:
        raise ValueError(f"features of shape {matrix.shape}; expected one row per image")
    result = np.ascontiguousarray(matrix, np.float32)
    if not np.isfinite(result).all():
        raise ValueError("features that are not finite")
    return result


def _captions(tree: Mapping[str, Any], images: int) -> list[list[str]]:
    captions = []
    for row in range(images):
        ids = tree["image_to_caption_ids"][row]
        texts = [tree["captions"][caption_id]["cleaned_caption"] for caption_id in ids]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"image {row} has no captions, or captions that are not text")
        # Python 2 wrote UTF-8 as bytes, which were read as Latin-1
        captions.append([_as_utf8(text) for text in texts])
    return captions


def _as_utf8(text: str) -> str:
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


CONVERTED_NAMES = frozenset({"SICK.txt", "train.pkl", "valid.pkl", "test.pkl"})
_SICK_SETS = {
    "TRAIN": "SICK_train.txt", "TRIAL": "SICK_trial.txt", "TEST": "SICK_test_annotated.txt",
}  # fmt: skip


def converted(
    set_id: str, paths: Sequence[Path], present: Mapping[Path, bytes]
) -> Iterator[tuple[Path, str, bytes]]:
    """Yields files of the layout: the path of its source, its name and its content.

    `paths` are all files that the user gave, and `present` the content of those that are in the
    layout already.
    """
    for path in paths:
        if set_id == "sick" and path.name == "SICK.txt":
            yield from ((path, *file) for file in sick_splits(content_of(path), path).items())
        elif set_id == "coco" and path.name in CONVERTED_NAMES:
            names = (f"{path.stem}.safetensors", f"{path.stem}.json")
            contents = as_files(*read_coco_pickle(path))
            yield from ((path, *file) for file in zip(names, contents, strict=True))
    for path, content in present.items() if set_id == "snli" else ():
        if path.name.startswith("snli_1.0_"):
            split = path.stem.rpartition("_")[2]
            columns = zip(*judged_rows(content, path), strict=True)
            for name, column in zip(("s1", "s2", "labels"), columns, strict=False):
                yield path, f"{name}.{split}", "".join(f"{text}\n" for text in column).encode()


def sick_splits(content: bytes, path: Path) -> dict[str, bytes]:
    """Splits SICK.txt, which holds all splits, into SemEval's three files."""
    wanted = (*SICK_COLUMNS[:4], "entailment_label", "SemEval_set")
    lines = {name: ["\t".join(SICK_COLUMNS)] for name in _SICK_SETS.values()}
    for row in below_header(content, path, wanted):
        lines[_SICK_SETS[row.one_of(5, _SICK_SETS)]].append("\t".join(row.fields[:5]))
    return {name: "".join(f"{line}\n" for line in rows).encode() for name, rows in lines.items()}
