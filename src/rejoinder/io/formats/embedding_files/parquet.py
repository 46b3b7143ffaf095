"""Embeddings as Parquet: columns `text` (strings) and `embedding` (lists of D float32)."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from rejoinder.errors import require
from rejoinder.protocols import Embeddings

_BLOCK_BYTES = 64 << 20
"""Bytes of the embeddings in a row group."""


class Parquet:
    """The format `.parquet`, which is made of texts and numbers at the end, by row groups.

    A Parquet file ends with the list of its row groups, so one that a killed process left can't be
    read or continued. Plain texts and numbers can.
    """

    header_bytes = 0
    parts = ("texts", "numbers")

    def require(self) -> None:
        """Checks that pyarrow is installed."""
        require("parquet", "pyarrow")

    def begin(self, files: Sequence[IO[bytes]], dim: int) -> None:
        """Writes nothing: the parts have no header."""

    def append(
        self, files: Sequence[IO[bytes]], texts: Sequence[str], embeddings: Embeddings
    ) -> None:
        """Appends texts as lines of JSON, because they may hold line ends, and numbers as bytes."""
        lines, numbers = files
        lines.writelines(f"{json.dumps(text)}\n".encode() for text in texts)
        numbers.write(embeddings.astype("<f4", copy=False).tobytes())

    def finish(self, folder: Path, count: int, dim: int) -> Path:
        """Writes the file, a row group at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / "embeddings.parquet"
        schema = pa.schema({"text": pa.string(), "embedding": pa.list_(pa.float32(), dim)})
        texts, numbers = (folder / name for name in self.parts)
        # neither compression nor a dictionary makes numbers of embeddings smaller
        with pq.ParquetWriter(
            path,
            schema,
            compression={"text": "zstd", "embedding.list.element": "none"},
            use_dictionary=False,
            write_statistics=False,
        ) as writer:
            for rows, matrix in _blocks(texts, numbers, count, dim):
                column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), dim)
                writer.write_table(pa.table([pa.array(rows, pa.string()), column], schema=schema))
        return path


def _blocks(
    texts: Path, numbers: Path, count: int, dim: int
) -> Iterator[tuple[list[str], np.ndarray[Any, Any]]]:
    """Yields the texts and numbers of each row group."""
    size = max(1, _BLOCK_BYTES // (4 * dim))
    with texts.open(encoding="utf-8") as lines, numbers.open("rb") as file:
        for low in range(0, count, size):
            rows = [json.loads(line) for line in islice(lines, min(size, count - low))]
            yield rows, np.fromfile(file, "<f4", len(rows) * dim).reshape(-1, dim)
