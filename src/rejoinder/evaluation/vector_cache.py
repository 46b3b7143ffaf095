"""Embeddings of an encoder by text, in an SQLite file: kept as soon as they are there."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_of
from rejoinder.io.files.storage import creation_errors
from rejoinder.protocols import Embeddings

_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class VectorCache:
    """Embeddings of one encoder in a file that several encoders and processes may share.

    A key is the SHA-256 of the encoder's name and the text, so the file holds no texts.
    """

    def __init__(self, path: Path, encoder: str) -> None:
        """The embeddings of `encoder`, which is identified by its name, in the file `path`.

        Raises:
            InputError: the file is damaged or can't be opened.
            StorageError: its folder can't be created.
        """
        self._path, self._encoder = path, encoder
        with creation_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as database:
            database.execute("PRAGMA page_size = 32768")  # a row with its vector fits a page
            database.execute(
                "CREATE TABLE IF NOT EXISTS embeddings "
                "(key BLOB PRIMARY KEY, vector BLOB NOT NULL, crc32 INTEGER) WITHOUT ROWID"
            )
            columns = database.execute("PRAGMA table_info(embeddings)").fetchall()
            if "crc32" not in [column[1] for column in columns]:  # of an earlier version
                database.execute("ALTER TABLE embeddings ADD COLUMN crc32 INTEGER")

    def read(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Returns the embeddings of those texts that have one, by text.

        One whose bytes were changed, or that has no checksum, is left out, as if never kept.

        Raises:
            InputError: the file is damaged.
        """
        by_key = {self._key(text): text for text in texts}
        query = "SELECT vector, crc32 FROM embeddings WHERE key = ?"
        found = {}
        with self._opened() as database:
            for key in sorted(by_key):  # in the order of the file, which takes half the time
                vector, crc32 = database.execute(query, (key,)).fetchone() or (None, None)
                if isinstance(vector, bytes) and crc32 == zlib.crc32(key + vector):
                    found[by_key[key]] = np.frombuffer(vector, "<f4")
        return found

    def write(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        """Keeps the embeddings of texts, (N, D) float32, and replaces any that they had.

        Raises:
            InputError: the file can't be written.
        """
        pairs = sorted(
            (self._key(text), row.astype("<f4").tobytes())
            for text, row in zip(texts, embeddings, strict=True)
        )
        rows = ((key, vector, zlib.crc32(key + vector)) for key, vector in pairs)
        with self._opened() as database:
            database.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return bytes.fromhex(sha256_of(json.dumps([self._encoder, text]).encode()))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Opens the file, and commits what the block wrote."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as database, database:
                yield database
        except sqlite3.Error as error:
            raise InputError(
                f"the cache {self._path} can't be used: {error}; if it is damaged, remove it."
            ) from None
