"""Unpacks, converts, cleans and checks files of data sets, local or downloaded.

Files of an untrusted archive can't be written outside the folder, and sizes are limited. COCO's
published features are pickles of strings and arrays, read without running their code: SentEval
publishes `{train,valid,test}.pkl`, written by Python 2, a dict of `features` (a row per image),
`image_to_caption_ids` (ids by row) and `captions` (by id, with a `cleaned_caption`).

Each kind of file is cleaned in its own way (byte order marks, line ends, encodings, escapes), and
checked by the parser of its reader.
"""

import codecs
import io
import json
import pickle
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, NoReturn, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from rejoinder.datasets import labelled, semeval
from rejoinder.datasets.catalogue import content_of
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import decoded, sha256_of
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
from rejoinder.io.formats.text_lines import BYTE_ORDER_MARK, below_header, decoded_lines, table_rows

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
    """Yields the entries of a tar likewise, or else the single file that was compressed."""
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
    """A stream whose first bytes have already been read."""

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
    raise InputError(f"{archive} holds {shown!r}, which {reason}. Unpack it, and name the folder.")


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
            raise ValueError(f"an array of {self.name!r}; expected {' or '.join(_FLOAT_TYPES)}")
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


_ALLOWED: Mapping[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): codecs.encode,
}
"""All functions that a pickle may call. dict, list, str, int and bytes need none."""


_PythonUnpickler: Any = pickle._Unpickler
"""The unpickler in Python. The C unpickler allocates as much as a damaged index asks for."""


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    """Sets the state only of arrays and their types: no other allowed function has a state."""

    def find_class(self, module: str, name: str) -> Any:
        """Returns an allowed function or class."""
        if (module, name) not in _ALLOWED:
            allowed = "dict, list, str, int, bytes and NumPy arrays"
            raise pickle.UnpicklingError(f"it calls {module}.{name}; only {allowed} are allowed")
        return _ALLOWED[module, name]


_REFUSED = (
    pickle.UnpicklingError, EOFError, MemoryError, RecursionError, ImportError, AssertionError,
    struct.error, ValueError, TypeError, LookupError, AttributeError, OverflowError,
)  # fmt: skip
"""The errors of reading a damaged, refused or foreign pickle."""


def read_coco_pickle(path: Path) -> tuple[NDArray[np.float32], list[list[str]]]:
    """Returns the features of images, (N, D) float32, and the captions of each."""
    with read_errors(path), path.open("rb") as file:
        try:
            tree = _Unpickler(file, encoding="latin-1").load()
            features = _matrix(tree["features"])
            return features, _captions(tree, len(features))
        except _REFUSED as error:
            raise InputError(
                f"{path} is refused, cut or not one of SentEval's COCO files "
                f"({type(error).__name__}: {error})."
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

    `paths` are all files that the user gave, and `present` the content of files that are already
    in the layout.
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
    """Splits SICK.txt, which contains all splits, into SemEval's three files."""
    wanted = (*labelled.SICK_COLUMNS[:4], "entailment_label", "SemEval_set")
    lines = {name: ["\t".join(labelled.SICK_COLUMNS)] for name in _SICK_SETS.values()}
    for row in below_header(content, path, wanted):
        lines[_SICK_SETS[row.one_of(5, _SICK_SETS)]].append("\t".join(row.fields[:5]))
    return {name: "".join(f"{line}\n" for line in rows).encode() for name, rows in lines.items()}


_ESCAPE = re.compile(r"M-(\^?)(?: ([!-/:-@\[-`{-~])(?: |$)|([ -~]))", re.MULTILINE)
"""Matches the escape of `cat -v` for a byte above 127. Tokenisers split it before punctuation:
`M- { `."""


def restore_escapes(text: str) -> tuple[str, int]:
    """Restores the Windows-1252 characters that `cat -v` wrote as `M-i` or `M-^E`.

    Returns the text, and the number of restored characters. A text with capital letters elsewhere
    is not changed, because its `M-` may be literal.

    >>> restore_escapes("the clichM-is M-^V and more")
    ('the clichés – and more', 2)
    >>> restore_escapes("The M-16 rifle")
    ('The M-16 rifle', 0)
    >>> restore_escapes("crM-hme brM- { lM-ie")
    ('crème brûlée', 3)
    """
    if re.search("[A-Z]", _ESCAPE.sub("", text)):
        return text, 0

    def byte(match: re.Match[str]) -> str:
        code = ord(match[2] or match[3])
        value = (code ^ 64) + 128 if match[1] else code + 128
        return windows_1252(bytes([value]))

    return _ESCAPE.subn(byte, text)


_WINDOWS = {at: bytes([at]).decode("cp1252", "ignore") or chr(at) for at in range(0x80, 0xA0)}


def windows_1252(content: bytes) -> str:
    r"""Decodes Windows-1252. The five bytes that it does not define are read as Latin-1.

    >>> windows_1252(b"so \x85 clich\xe9 \x81")
    'so … cliché \x81'
    """
    return content.decode("latin-1").translate(_WINDOWS)


def plain(content: bytes) -> tuple[bytes, list[str]]:
    """Removes a byte order mark, and carriage returns at line ends."""
    notes = []
    if content.startswith(BYTE_ORDER_MARK):
        content = content.removeprefix(BYTE_ORDER_MARK)
        notes.append("the byte order mark was removed")
    if returns := content.count(b"\r\n"):
        content = content.replace(b"\r\n", b"\n")
        notes.append(f"{returns:,} carriage returns at line ends were removed")
    return content, notes


def sentences(content: bytes) -> tuple[bytes, list[str]]:
    """Converts sentences to UTF-8 and restores escapes of `cat -v`. Byte 0x85 is an ellipsis."""
    content, notes = plain(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = windows_1252(content)
        changed = sum(not line.isascii() for line in content.split(b"\n"))
        notes.append(f"{changed:,} lines were converted from Windows-1252 to UTF-8")
    text, escapes = restore_escapes(text)
    if escapes:
        notes.append(f"{escapes:,} escapes of `cat -v` were replaced by their characters")
    return text.encode("utf-8"), notes


def latin(content: bytes) -> tuple[bytes, list[str]]:
    """Converts a file of TREC to Latin-1, as published. Its readers expect that."""
    content, notes = plain(content)
    if not content.isascii():
        try:
            content = content.decode("utf-8").encode("latin-1")
        except UnicodeError:
            return content, notes
        notes.append("it was converted from UTF-8 to Latin-1, as published")
    return content, notes


def inference_lines(content: bytes, path: Path) -> tuple[bytes, list[str]]:
    """Converts the table of SNLI or MultiNLI to JSON lines. JSON lines are returned as they are."""
    if not content.startswith(b"gold_label\t"):
        return content, []
    names = ("gold_label", "sentence1", "sentence2")
    table = below_header(content, path, names, exact=False)
    rows = [json.dumps(dict(zip(names, row.fields, strict=True))) for row in table]
    note = "the table was converted to JSON lines of gold_label, sentence1 and sentence2"
    return "".join(f"{row}\n" for row in rows).encode("utf-8"), [note]


def unchanged(content: bytes) -> tuple[bytes, list[str]]:
    """Returns the file as it is."""
    return content, []


_OTHERS = re.compile(rb"[^a-z0-9]+")
_FEW_LETTERS = 200
"""A text with fewer letters is in another alphabet, and its fingerprint is unreliable."""


@dataclass(frozen=True)
class Examined:
    """A file that has been cleaned and checked."""

    path: Path
    content: bytes
    rows: int
    letters: str
    """A fingerprint of the letters a-z and digits. Empty if the kind has none."""
    notes: tuple[str, ...]
    """One clause per change."""


def examine(content: bytes, path: Path, kind: str) -> Examined:
    """Cleans a file, checks its `DataFile.kind`, and counts its rows."""
    form = _FORMS[kind]
    cleaned, notes = form.clean(content)
    if kind == "nli":
        cleaned, changes = inference_lines(cleaned, path)
        notes += changes
    parsed = form.parse(cleaned, path)
    rows = parsed if isinstance(parsed, int) else len(parsed)
    return Examined(path, cleaned, rows, form.letters(cleaned), tuple(notes))


def _letters(content: bytes) -> str:
    """Returns a fingerprint that is the same for any tokenisation, case and quotes."""
    try:
        # İ becomes i and a dot, so it counts as i
        content = content.decode("utf-8").lower().encode("utf-8")
    except UnicodeDecodeError:
        content = content.lower()
    letters = _OTHERS.sub(b"", content)
    return sha256_of(letters)[:16] if len(letters) >= _FEW_LETTERS else ""


def _letters_of_stsb(content: bytes) -> str:
    """Leaves out the sources, which only some editions of the STS Benchmark have."""
    return _letters(b"\n".join(b"\t".join(row.split(b"\t")[:7]) for row in content.split(b"\n")))


def _no_letters(_content: bytes) -> str:
    return ""


def _lines(content: bytes, path: Path) -> list[str]:
    if b"\0" in content[:4096]:
        raise InputError(f"{path} is not a text file: it has a zero byte.")
    return decoded_lines(content, path)


class _Judged(msgspec.Struct):
    sentence1: str
    sentence2: str
    gold_label: Literal["contradiction", "neutral", "entailment", "-"]


def judged_rows(content: bytes, path: Path) -> list[tuple[str, str, str]]:
    """Parses JSON lines of SNLI or MultiNLI: premise, hypothesis and class of judged rows."""
    rows: list[tuple[str, str, str]] = []
    for number, line in enumerate(decoded_lines(content, path), 1):
        try:
            row = decoded(_Judged, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} line {number} is not a pair of SNLI: {error}.") from None
        if row.gold_label != "-":
            first, second = (" ".join(one.split()) for one in (row.sentence1, row.sentence2))
            rows.append((first, second, row.gold_label))
    return rows


def _questions(content: bytes, path: Path) -> int:
    """Counts related questions, including those with the label `?`."""
    return sum(len(query.related) for query in semeval.parse_cqa(content, path, None))


def _intents(content: bytes, path: Path) -> int:
    """Counts the questions of CLINC150 that have an intent."""
    splits = labelled.INTENTS["clinc150"]
    return sum(len(labelled.parse_clinc150(content, path, split)) for split in splits)


def _table(content: bytes, path: Path, columns: tuple[int, ...]) -> int:
    """Counts the rows of a table with an allowed number of columns."""
    return sum(1 for _ in table_rows(content, path, columns))


def _rows_of_features(content: bytes, path: Path) -> int:
    """Returns the number of rows of the matrix in a safetensors file, from its header."""
    try:
        length = int.from_bytes(content[:8], "little")
        rows, _columns = json.loads(content[8 : 8 + length])["features"]["shape"]
        return int(rows)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        raise InputError(f"{path} is not a safetensors file with the matrix features.") from None


class _Form(NamedTuple):
    clean: Callable[[bytes], tuple[bytes, list[str]]]
    parse: Callable[[bytes, Path], Sized | int]
    """Returns the rows or their number. Refuses other content."""
    letters: Callable[[bytes], str] = _letters


_FORMS = {
    "sentences": _Form(sentences, _lines),
    "sst2": _Form(sentences, partial(labelled.parse_sst, classes=2)),
    "sst5": _Form(sentences, partial(labelled.parse_sst, classes=5)),
    "trec": _Form(latin, labelled.parse_trec),
    "mrpc": _Form(plain, labelled.parse_mrpc),
    "sick": _Form(plain, labelled.parse_sick),
    "sts_input": _Form(plain, semeval.parse_inputs),
    "sts_gs": _Form(plain, semeval.parse_scores),
    "stsb": _Form(plain, semeval.parse_stsb, _letters_of_stsb),
    "lines": _Form(plain, _lines, _no_letters),
    "nli_labels": _Form(plain, labelled.parse_labels, _no_letters),
    "nli": _Form(plain, judged_rows, _no_letters),
    "cqa_xml": _Form(unchanged, _questions),
    "cqa_gold": _Form(plain, semeval.parse_relevancy),
    "probing": _Form(plain, labelled.parse_probing, _no_letters),
    "semrel": _Form(plain, semeval.parse_semrel),
    "scored": _Form(plain, semeval.parse_scored),
    "pairs": _Form(plain, labelled.parse_pairs),
    "banking77": _Form(plain, labelled.parse_banking77),
    "clinc150": _Form(plain, _intents),
    "askubuntu": _Form(plain, partial(_table, columns=(3, 4))),
    "askubuntu_texts": _Form(plain, partial(_table, columns=(2, 3))),
    "coco_features": _Form(unchanged, _rows_of_features, _no_letters),
    "coco_captions": _Form(unchanged, labelled.parse_captions, _no_letters),
}
