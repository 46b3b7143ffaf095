"""The steps of extraction by parts, in their order."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.ahead import mapped_ahead
from rejoinder.corpus.engines.base import Extraction, Outcome
from rejoinder.corpus.engines.duckdb import DuckDBEngine
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.parted.doubles import Doubles, find_doubles
from rejoinder.corpus.parted.join import join
from rejoinder.corpus.parted.merge import (
    Pairs,
    PairsInFiles,
    PairsInMemory,
    Runs,
    all_runs,
    runs_of,
)
from rejoinder.corpus.parted.reading import Classifier, Database, splits
from rejoinder.corpus.parted.rows import KEPT, CrossingError, Rows
from rejoinder.corpus.parted.store import Store
from rejoinder.corpus.readers import Report, mapped_comments
from rejoinder.corpus.writer import write_shards
from rejoinder.files.places import Place, size_of

_STORE_SHARE = 0.5
"""Share of the memory for comments. The rest is for joining and for the output."""
_PIECE_ROWS = 65_536
_GROWTH = 8
"""Bytes of a comment in memory by its bytes in a compressed dump."""
_PARTS = (6, 9)
"""Least and largest number of parts, as powers of two."""


class PartedExtraction:
    """One extraction by parts."""

    def __init__(
        self,
        extraction: Extraction,
        engine: DuckDBEngine,
        spill: Path,
        progress: ExtractProgress,
    ) -> None:
        """Prepares an extraction with the memory and threads of `engine`."""
        self._extraction, self._engine, self._progress = extraction, engine, progress
        self._memory, self._threads, self._spill = engine.memory, engine.threads, spill
        self._database = Database()
        self._report = Report()
        self._fates = np.zeros((256, 2), np.int64)
        self._lock = threading.Lock()

    def run(self, folder: Place) -> Outcome:
        """Reads, joins and writes.

        Raises:
            CrossingError: the comments can't be parted by their threads.
        """
        store = self._read()
        self._progress("joining", 0, None)
        ids = store.ids()
        rules = list(self._extraction.rules)
        doubles = find_doubles(store, ids, rules, self._engine)
        pairs: Pairs = PairsInFiles(self._spill) if store.spilled else PairsInMemory(2**store.bits)
        runs, not_found, dropped = self._join(store, ids, doubles, pairs)
        store.drop_files()
        self._progress("sorting", 0, None)
        pieces = runs.in_order().pieces(_PIECE_ROWS, self._extraction.limit)
        frames = self._frames(pairs, pieces, store.spilled)
        written = write_shards(folder, frames)
        fates = dict(zip(rules, self._fates[1:, 0].tolist(), strict=False))
        kept, replies = self._fates[KEPT].tolist()
        return Outcome(
            report=self._report,
            duplicates=doubles.duplicates,
            conflicts=doubles.conflicts,
            fates={**fates, "kept": kept, "replies": replies},
            parent_not_found=not_found,
            parent_dropped=dropped,
            written=written,
        )

    def _read(self) -> Store:
        extraction = self._extraction
        reading = extraction.reading
        size = sum(map(size_of, reading.files))
        need = size * _GROWTH / (self._memory / (4 * self._threads + 4))
        bits = int(np.clip(np.ceil(np.log2(max(need, 1))), *_PARTS))
        store = Store(int(self._memory * _STORE_SHARE), bits, self._spill)
        classify = Classifier(self._database, reading.select, extraction.rules)
        for rows, block in mapped_comments(
            classify,
            reading.files,
            reading.columns,
            self._report,
            strict=reading.strict,
            separator=reading.separator,
        ):
            self._progress("reading", self._report.bytes_read, size)
            store.add(rows, block)
        store.finish()
        return store

    def _join(
        self, store: Store, ids: NDArray[np.uint64], doubles: Doubles, pairs: Pairs
    ) -> tuple[Runs, int, int]:
        """Joins all parts; returns the runs, and the numbers of lost and of dropped parents."""

        def one(part: int) -> tuple[Runs, int, int]:
            rows, blocks = store.part(part)
            rows = doubles.without(part, rows)
            joined = join(rows, blocks)
            place = np.searchsorted(ids, joined.missing)
            place[place == len(ids)] = 0
            if len(ids) and (ids[place] == joined.missing).any():
                raise CrossingError
            self._count(rows)
            split = splits(self._database, joined.threads, self._extraction.split)
            runs = pairs.add(part, joined, runs_of(joined, part, split), rows, blocks)
            return runs, len(joined.missing), joined.dropped

        found = list(mapped_ahead(one, store.parts(), self._threads))
        pairs.finish()
        return (
            all_runs([runs for runs, _, _ in found]),
            sum(missing for _, missing, _ in found),
            sum(dropped for _, _, dropped in found),
        )

    def _count(self, rows: Rows) -> None:
        counts = np.bincount(rows.rule, minlength=256)
        replies = np.bincount(rows.rule, rows.answers, minlength=256).astype(np.int64)
        with self._lock:
            self._fates += np.stack([counts, replies], axis=1)

    def _frames(
        self, pairs: Pairs, pieces: Iterator[Runs], in_order: bool
    ) -> Iterator[pl.DataFrame]:
        done = 0
        # files are read from the beginning to the end: one thread at a time
        threads = 1 if in_order else self._threads
        for frame in mapped_ahead(pairs.frame, pieces, threads):
            done += len(frame)
            self._progress("writing", done, None)
            yield frame
