"""Writes files of embeddings a piece at a time, as `.npy`, `.parquet` or `.jsonl`.

A new format needs a class and an entry in `FORMATS`.

Also lists the errors of reading safetensors files: the library has no base class for them.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError

from rejoinder.errors import InputError, require
from rejoinder.protocols import Embeddings

_BLOCK_BYTES = 64 << 20
"""Bytes of the embeddings in a row group of Parquet."""

Known = Sequence[Mapping[str, Any]]
"""What is known about texts, in JSON values."""
Contents = tuple[Iterable[bytes | memoryview], ...]
"""Pieces of bytes for each part."""

exact = "{:.9g}".format
"""Returns a number with nine digits, which identify a float32."""


class EmbeddingFormat:
    """A format of embedding files.

    Embeddings are appended to one or more parts, which are files of bytes. What is in them never
    changes while they grow, so that parts that were cut back to an earlier size can grow again.
    """

    parts: tuple[str, ...]
    """Names of the parts."""
    header_bytes = 0
    """Number of first bytes of each part that `finish` writes again."""
    packages: tuple[str, ...] = ()
    """Packages of the extra `parquet` that it needs."""

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes what comes before the embeddings into the empty `files`, one for each part."""

    def append(
        self,
        files: Sequence[IO[bytes]],
        texts: Sequence[str],
        embeddings: Embeddings,
        known: Known = (),
    ) -> None:
        """Appends texts and their embeddings, (N, dim) float32, to the `files` of the parts.

        `known` has what is known about each text, in JSON values; empty: nothing about any.
        """
        contents = self.contents(texts, embeddings, known or [{}] * len(texts))
        for file, content in zip(files, contents, strict=True):
            file.writelines(content)

    def contents(self, texts: Sequence[str], embeddings: Embeddings, known: Known) -> Contents:
        """Returns what is appended to each part; `known` as in `append`, one for each text."""
        raise NotImplementedError

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Makes the whole file of the parts in `folder`, and returns its path in `folder`.

        `count` is the number of all embeddings. It may be called again after it was interrupted.
        By default the only part is the file.
        """
        del count, dim
        return folder / self.parts[0]


class Npy(EmbeddingFormat):
    """The format `.npy`: an array, (N, dim) float32, whose header is written again at the end."""

    header_bytes = 128
    parts = ("embeddings.npy",)

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes the header of an array of no rows, which has the length of any other's."""
        files[0].write(_header(0, dim))

    def contents(self, texts: Sequence[str], embeddings: Embeddings, known: Known) -> Contents:
        """Returns the rows; an array holds no texts."""
        del texts, known
        return ([_bytes_of(embeddings)],)

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Writes the number of rows into the header."""
        path = folder / self.parts[0]
        with path.open("r+b") as file:
            file.write(_header(count, dim))
        return path


def _bytes_of(embeddings: Embeddings) -> memoryview:
    """Returns the bytes of rows as float32, without a copy where they are float32 already."""
    return np.ascontiguousarray(embeddings, "<f4").reshape(-1).view(np.uint8).data


def _header(count: int, dim: int) -> bytes:
    """Returns the header of a (count, dim) float32 array.

    NumPy leaves room for 20 digits in it, so that the number of rows can grow.
    """
    buffer = io.BytesIO()
    facts = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
    np.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()


def json_lines(texts: Sequence[str], embeddings: Embeddings, known: Known = ()) -> Iterator[str]:
    """Yields an object for each text, without a line end; `known` as in `append`."""
    for text, row, about in zip(texts, embeddings, known or [{}] * len(texts), strict=True):
        numbers = ", ".join(map(exact, row.tolist()))
        facts = json.dumps({"text": text, **about}, ensure_ascii=False)
        yield f'{facts[:-1]}, "embedding": [{numbers}]}}'


class JsonLines(EmbeddingFormat):
    """The format `.jsonl`: an object with `text` and `embedding` on each line.

    What is known about a text stands between the two.
    """

    parts = ("embeddings.jsonl",)

    def contents(self, texts: Sequence[str], embeddings: Embeddings, known: Known) -> Contents:
        """Returns a line for each text."""
        return ((f"{line}\n".encode() for line in json_lines(texts, embeddings, known)),)


class Parquet(EmbeddingFormat):
    """The format `.parquet`, which is made of texts and numbers at the end, by row groups.

    Where something is known about the texts, a column `about` has it as JSON.

    A Parquet file ends with the list of its row groups, so one that a killed process left can't be
    read or continued. Plain texts and numbers can.
    """

    parts = ("texts", "numbers")
    packages = ("pyarrow",)

    def contents(self, texts: Sequence[str], embeddings: Embeddings, known: Known) -> Contents:
        """Returns texts as lines of JSON, because they may hold line ends, and numbers as bytes."""
        facts = (json.dumps(one, ensure_ascii=False) if one else None for one in known)
        lines = (f"{json.dumps(pair)}\n".encode() for pair in zip(texts, facts, strict=True))
        return lines, [_bytes_of(embeddings)]

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Writes the file, a row group at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / "embeddings.parquet"
        texts, numbers = (folder / name for name in self.parts)
        with texts.open(encoding="utf-8") as lines:
            has_about = bool(json.loads(next(lines, "[0, 0]"))[1])
        fields = {"text": pa.string(), **({"about": pa.string()} if has_about else {})}
        schema = pa.schema({**fields, "embedding": pa.list_(pa.float32(), dim)})
        # neither compression nor a dictionary makes numbers of embeddings smaller
        packing = {**dict.fromkeys(fields, "zstd"), "embedding.list.element": "none"}
        size = max(1, _BLOCK_BYTES // (4 * dim))
        with (
            texts.open(encoding="utf-8") as lines,
            numbers.open("rb") as file,
            pq.ParquetWriter(
                path, schema, compression=packing, use_dictionary=False, write_statistics=False
            ) as writer,
        ):
            for low in range(0, count, size):
                rows = [json.loads(line) for line in islice(lines, min(size, count - low))]
                words = [pa.array(each, pa.string()) for each in zip(*rows, strict=True)]
                matrix = pa.array(np.fromfile(file, "<f4", len(rows) * dim))
                column = pa.FixedSizeListArray.from_arrays(matrix, dim)
                writer.write_table(pa.table([*words[: len(fields)], column], schema=schema))
        return path


FORMATS: dict[str, EmbeddingFormat] = {".npy": Npy(), ".parquet": Parquet(), ".jsonl": JsonLines()}
"""Formats by the suffix of a file's name."""


def format_of(path: Path) -> EmbeddingFormat:
    """Returns the format of a file by the suffix of its name.

    Raises:
        InputError: there is no such format.
        MissingExtraError: the format needs a package that is not installed.
    """
    found = FORMATS.get(path.suffix)
    if found is None:
        raise InputError(f"{path}: the name must end in one of {', '.join(FORMATS)}.")
    require("parquet", *found.packages)
    return found


UNREADABLE = (
    SafetensorError,
    OSError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    AttributeError,  # a type of numbers that NumPy lacks, such as float8
)
"""Errors of a file that is missing, damaged, foreign, or holds other tensors than are read."""
