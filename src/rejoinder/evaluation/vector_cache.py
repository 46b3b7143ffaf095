"""Stores embeddings of encoders by text in an SQLite file, as soon as they are computed."""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.io.files.hashed import blake2b_number, sha256_of
from rejoinder.io.files.storage import creation_errors
from rejoinder.protocols import Embeddings

_PATIENCE = 60.0
"""Seconds to wait for another writing process."""
_MOST_ROWS = 1024
"""Largest number of embeddings in a batch. A changed byte loses one batch."""
_KEYS = "SELECT id, keys FROM batches WHERE encoder = ? AND id > ? ORDER BY id"
_BATCH = "SELECT keys, vectors, crc32 FROM batches WHERE id = ?"
_INSERT = "INSERT INTO batches (encoder, keys, vectors, crc32) VALUES (?, ?, ?, ?)"


class VectorCache:
    """Embeddings of one encoder, in a file that several encoders and processes may share.

    They are kept in batches, which never change. Keys are hashes, so the file holds no texts.
    """

    def __init__(self, path: Path, encoder: str) -> None:
        """The embeddings of `encoder`, which is identified by its name, in the file `path`.

        Raises:
            InputError: the file is damaged or can't be opened.
            StorageError: its folder can't be created.
        """
        self._path, self._encoder = path, sha256_of(encoder.encode())
        self._places: dict[int, int] = {}  # by key: _MOST_ROWS * the batch's id + the row in it
        self._last = 0  # id of the last batch in `_places`
        with creation_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as database:
            database.execute("PRAGMA page_size = 65536")
            database.execute(
                "CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY, encoder TEXT, "
                "keys BLOB, vectors BLOB, crc32 INTEGER)"
            )

    def completed(
        self, texts: Sequence[str], encode: Callable[[list[str]], Iterable[Embeddings]]
    ) -> Embeddings:
        """Returns (N, D) float32 embeddings of N > 0 texts, and stores the new ones.

        `encode` gets the texts without an embedding, if there are any. It yields their
        embeddings in one or more parts, each of which is stored before the next is requested.

        Raises:
            InputError: the file is damaged, can't be written, or has embeddings of another width.
        """
        keys = np.array([blake2b_number(t.encode("utf-8", "surrogatepass")) for t in texts], "<u8")
        embeddings, missing = self._read(keys)
        for part in encode([texts[row] for row in missing]) if len(missing) else ():
            if not embeddings.size:
                embeddings = np.empty((len(texts), part.shape[1]), np.float32)
            if part.shape[1] != embeddings.shape[1]:
                raise InputError(
                    f"the cache {self._path} holds vectors of {embeddings.shape[1]} numbers, and "
                    f"the encoder returned {part.shape[1]}; remove the cache."
                )
            rows, missing = np.split(missing, [len(part)])
            self._write(keys[rows], np.ascontiguousarray(part, "<f4"))
            embeddings[rows] = part
        return embeddings

    def _read(self, keys: NDArray[np.uint64]) -> tuple[Embeddings, NDArray[np.int64]]:
        """Returns (N, D) embeddings of (N,) keys, and the rows of keys without one.

        D is 0 if no key has one. A batch whose bytes were changed counts as missing.
        """
        embeddings, absent = np.empty((len(keys), 0), np.float32), np.ones(len(keys), np.bool_)
        with self._opened() as database:
            for batch, known in database.execute(_KEYS, (self._encoder, self._last)).fetchall():
                places = range(batch * _MOST_ROWS, (batch + 1) * _MOST_ROWS)
                self._places.update(zip(np.frombuffer(known, "<u8").tolist(), places, strict=False))
                self._last = batch
            place = np.array([self._places.get(key, 0) for key in keys.tolist()], np.int64)
            order = np.argsort(place, kind="stable")
            for rows in np.split(order, np.flatnonzero(np.diff(place[order] // _MOST_ROWS)) + 1):
                found = database.execute(_BATCH, (int(place[rows[0]]) // _MOST_ROWS,)).fetchone()
                known, vectors, crc32 = found or (b"", b"", None)
                if crc32 != zlib.crc32(vectors, zlib.crc32(known)):
                    continue
                stored = np.frombuffer(known, "<u8")
                matrix = np.frombuffer(vectors, "<f4").reshape(len(stored), -1)
                chosen = place[rows] % _MOST_ROWS
                if (stored[chosen] == keys[rows]).all():  # else the file has been replaced
                    if not embeddings.size:
                        embeddings = np.empty((len(keys), matrix.shape[1]), np.float32)
                    embeddings[rows], absent[rows] = matrix[chosen], False
        return embeddings, np.flatnonzero(absent)

    def _write(self, keys: NDArray[np.uint64], embeddings: Embeddings) -> None:
        with self._opened() as database:
            for start in range(0, len(keys), _MOST_ROWS):
                part = keys[start : start + _MOST_ROWS].data
                vectors = embeddings[start : start + _MOST_ROWS].data
                crc32 = zlib.crc32(vectors, zlib.crc32(part))
                database.execute(_INSERT, (self._encoder, part, vectors, crc32))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Opens the file, and commits what the block wrote."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as database, database:
                yield database
        except (sqlite3.Error, TypeError, ValueError, IndexError) as error:
            broken = f"the cache {self._path} can't be used: {error}"
            raise InputError(f"{broken}; if it is damaged, remove it.") from None
