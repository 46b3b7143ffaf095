"""Unpacks untrusted archives: no file leaves the folder, and sizes are limited.

Reads COCO's published features: pickles of strings and arrays, without running their code.

SentEval publishes `{train,valid,test}.pkl`, written by Python 2: a dict of `features` (a row per
image), `image_to_caption_ids` (ids by row) and `captions` (by id, with a `cleaned_caption`).

Converts files that are not published in SentEval's layout.
"""

import io
import json
import pickle
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.datasets.acquire.forms import judged_rows
from rejoinder.datasets.catalogue import content_of
from rejoinder.datasets.labelled import SICK_COLUMNS
from rejoinder.errors import InputError
from rejoinder.io.files.storage import read_errors, storage_errors
from rejoinder.io.formats.compression import (
    ARCHIVE_DAMAGES,
    LIMITS,
    OPENERS,
    Limits,
    Meter,
    Metered,
    Reader,
    compression_of,
    damage_errors,
    tar_of,
)
from rejoinder.io.formats.text_lines import below_header

_PIECE_BYTES = 1 << 20
_SUFFIXES = re.compile(r"\.(zip|tgz|tbz2?|txz|tar(\.\w+)?)$", re.IGNORECASE)


def is_archive(path: Path) -> bool:
    """Returns whether a file has the name of an archive or of a compressed file."""
    return bool(_SUFFIXES.search(path.name)) or path.suffix in OPENERS


def unpack(archive: Path, into: Path, limits: Limits = LIMITS) -> list[Path]:
    """Unpacks a zip, a tar in any compression, or a single compressed file into an empty folder.

    The content of the file decides, not its name. Archives inside the archive are not opened.
    Archives that are damaged, encrypted or too large, that hold links or devices, or that would
    write outside `into` are refused, if possible before anything is unpacked.

    Returns the paths of the files below `into`, or `archive` itself if it is a plain file.
    """
    with read_errors(archive):
        with archive.open("rb") as file:
            head = file.read(512)
        meter = Meter(archive, limits)
    suffix, paths = compression_of(head), []
    with damage_errors(archive, f"unpacked to {into}", *ARCHIVE_DAMAGES), storage_errors(into):
        if head.startswith(b"PK\x03\x04"):
            entries = _zip_entries(archive, meter)
        elif suffix is not None or _is_tar(head, archive.name):
            entries = _stream_entries(archive, suffix, meter)
        else:
            return [archive]
        for name, content in entries:
            path = _path_inside(archive, name, into)
            if content is not None:
                _write(content, path, archive, name)
                paths.append(path)
    return paths


def _is_tar(head: bytes, name: str) -> bool:
    return head[257:].startswith(b"ustar") or name.endswith(".tar")


def _zip_entries(archive: Path, meter: Meter) -> Iterator[tuple[str, Reader | None]]:
    """Yields the name and the content of each entry. The content of a folder is None."""
    with zipfile.ZipFile(archive) as file:
        meter.announce(sum(entry.file_size for entry in file.infolist()))
        for entry in file.infolist():
            meter.add_entry()
            if entry.filename.endswith("/"):
                yield entry.filename, None
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                _refuse_entry(archive, entry.filename, "is a link or a device")
            if entry.flag_bits & 1:
                _refuse_entry(archive, entry.filename, "is encrypted")
            # a stream ends at the size that the directory states, and its CRC is checked there
            with file.open(entry) as stream:
                yield entry.filename, Metered(cast("Reader", stream), meter)


def _stream_entries(
    archive: Path, suffix: str | None, meter: Meter
) -> Iterator[tuple[str, Reader | None]]:
    """Yields the same of a tar, or else the single file that was compressed."""
    with archive.open("rb") as file:
        stream = Metered(OPENERS[suffix](file) if suffix else cast("Reader", file), meter, file)
        head = b""
        while len(head) < 512 and (piece := stream.read(512 - len(head))):
            head += piece
        whole = _Joined(head, stream)
        if not _is_tar(head, re.sub(r"\.\w+$", "", archive.name)):
            yield archive.stem if archive.suffix in OPENERS else archive.name, whole
            return
        with tar_of(whole, "replace") as tar:
            for entry in tar:
                meter.add_entry()
                # the holes of a sparse file are not in the stream, so they would not be counted
                if not (entry.isdir() or entry.isfile()) or entry.issparse():
                    _refuse_entry(archive, entry.name, "is a link, a device or a sparse file")
                meter.announce(entry.size)
                content: Any = tar.extractfile(entry)  # None for a folder
                yield entry.name, content


class _Joined:
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, rest: Reader) -> None:
        self.head, self.rest = io.BytesIO(head), rest

    def read(self, size: int = -1, /) -> bytes:
        return self.head.read(size) or self.rest.read(size)


def _path_inside(archive: Path, name: str, into: Path) -> Path:
    """Returns the path of an entry below `into`. Absolute paths and `..` are refused."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ":" in path.parts[:1] or re.match(r"[A-Za-z]:", name) or "\0" in name:
        _refuse_entry(archive, name, "has an absolute path")
    if ".." in path.parts:
        _refuse_entry(archive, name, "has a path that leaves the folder")
    if not path.parts and not name.endswith(("/", ".")):
        _refuse_entry(archive, name, "has no name")
    return into / path


def _refuse_entry(archive: Path, name: str, reason: str) -> NoReturn:
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    raise InputError(
        f"{archive} holds {shown!r}, which {reason}. Get the archive from the official "
        "place, or unpack it yourself and name the folder."
    )


def _write(stream: Reader, path: Path, archive: Path, name: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        _refuse_entry(archive, name, "occurs twice, or is a file and a folder")
    with file:
        while piece := stream.read(_PIECE_BYTES):
            file.write(piece)


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
