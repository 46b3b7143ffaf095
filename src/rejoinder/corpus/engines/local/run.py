"""The steps of extraction by parts, in their order."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from rejoinder.corpus.engines.base import Extraction, Outcome
from rejoinder.corpus.engines.duckdb import DuckDBEngine
from rejoinder.corpus.engines.local.carried import BITS, CarriedComments, CarriedWriter
from rejoinder.corpus.engines.local.doubles import Doubles, find_doubles
from rejoinder.corpus.engines.local.hashes import Hashes, among
from rejoinder.corpus.engines.local.join import join
from rejoinder.corpus.engines.local.merge import (
    Pairs,
    PairsInFiles,
    PairsInMemory,
    Runs,
    all_runs,
    runs_of,
)
from rejoinder.corpus.engines.local.reading import Classifier, Database, Splitter
from rejoinder.corpus.engines.local.rows import (
    ELSEWHERE,
    KEPT,
    Block,
    CrossingError,
    Rows,
    RowsInParts,
    concatenated,
)
from rejoinder.corpus.engines.local.store import Store
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.reading.ahead import mapped_ahead
from rejoinder.corpus.reading.readers import Report, mapped_comments
from rejoinder.corpus.writer import write_shards
from rejoinder.io.files.places import Place, size_of

_STORE_SHARE = 0.5
"""Share of the memory for comments. The rest is for joining and for the output."""
_PIECE_ROWS = 65_536
_WRITER_BYTES = 1 << 29
"""The `--memory` for each shard that is written at a time: a shard's rows take 60 MB and more."""
_GROWTH = 8
"""Bytes of a comment in memory by its bytes in a compressed dump."""
_PARTS = (4, BITS)
"""Least and largest number of parts, as powers of two."""


@dataclass(frozen=True)
class _JoinedPart:
    """What is left of a part when its pairs are taken."""

    runs: Runs
    missing: Hashes
    """Hashes of the parents that the part lacks."""
    counts: Counter[str]
    batches: list[pa.RecordBatch]
    """Its comments for later extractions."""


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
        self._carry = extraction.carry
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
        carried = CarriedComments(self._carry.files if self._carry else (), store.bits)
        known = carried.known(ids)
        if self._carry and len(known) and len(known) == len(np.unique(ids)):
            raise self._carry.nothing_new()
        doubles = find_doubles(store, ids, rules, self._engine, carried, known)
        # the strings of carried comments are not kept in memory
        in_files = store.spilled or bool(carried)
        pairs: Pairs = PairsInFiles(self._spill) if in_files else PairsInMemory(2**store.bits)
        runs, counts = self._join(store, ids, doubles, carried, pairs)
        store.drop_files()
        self._progress("sorting", 0, None)
        pieces = runs.in_order().pieces(_PIECE_ROWS, self._extraction.limit)
        tables = self._tables(pairs, pieces, in_files)
        writers = max(1, min(self._threads, self._memory // _WRITER_BYTES))
        written = write_shards(folder, tables, int(writers))
        fates = dict(zip(rules, self._fates[1:, 0].tolist(), strict=False))
        kept, replies = self._fates[KEPT].tolist()
        return Outcome(
            report=self._report,
            duplicates=doubles.duplicates,
            conflicts=doubles.conflicts,
            fates={**fates, "kept": kept, "replies": replies},
            parent_not_found=counts["parent_not_found"],
            parent_dropped=counts["parent_dropped"],
            written=written,
            carried_messages=counts["carried_messages"],
            carried_replies=counts["carried_replies"],
            overruled=doubles.overruled,
        )

    def _read(self) -> Store:
        extraction = self._extraction
        reading = extraction.reading
        size = sum(map(size_of, reading.files))
        held = size + (self._carry.bytes if self._carry else 0)
        need = held * _GROWTH / (self._memory / (4 * self._threads + 4))
        bits = int(np.clip(np.ceil(np.log2(max(need, 1))), *_PARTS))
        room = int(self._memory * _STORE_SHARE)
        store = Store(room, bits, self._spill, self._threads)
        classifier = partial(
            Classifier, self._database, reading.select, extraction.rules, lasting=bool(self._carry)
        )
        # meanwhile the first comments are read: Ibis takes a fifth of a second
        with ThreadPoolExecutor(1) as beside:
            for piece, block in self._pieces(beside.submit(classifier), bits):
                self._progress("reading", self._report.bytes_read, size)
                store.add(piece, block)
        store.finish()
        return store

    def _pieces(
        self, classifier: Future[Classifier], bits: int
    ) -> Iterator[tuple[RowsInParts, Block]]:
        def in_parts(comments: pa.RecordBatch) -> tuple[RowsInParts, Block]:
            rows, block = classifier.result()(comments)
            return rows.in_parts(bits), block

        reading = self._extraction.reading
        yield from mapped_comments(
            in_parts,
            reading.files,
            reading.columns,
            self._report,
            strict=reading.strict,
            separator=reading.separator,
        )
        classifier.result()  # rules that can't be computed are an error also without comments

    def _join(
        self,
        store: Store,
        ids: Hashes,
        doubles: Doubles,
        carried: CarriedComments,
        pairs: Pairs,
    ) -> tuple[Runs, "Counter[str]"]:
        """Joins all parts, and writes their comments for later extractions.

        Returns the runs, and counts by the names of `Outcome`.
        """
        ids = ids[~among(ids, doubles.carried)]
        split_of = Splitter(self._database, self._extraction.split)

        def one(part: int) -> _JoinedPart:
            rows, blocks = store.part(part)
            rows = doubles.without(part, rows)
            self._count(rows)
            batches = writer.batches(part, rows, blocks) if writer else []
            fresh = len(rows)
            if carried:
                older, block = carried.part(part, rows, ids)
                older.which[:] = len(blocks)
                rows, blocks = concatenated([rows, older]), [*blocks, block]
            joined = join(rows, blocks, fresh)
            if among(joined.missing, ids).any():
                raise CrossingError(ELSEWHERE)
            split = split_of(joined.threads)
            runs = pairs.add(part, joined, runs_of(joined, part, split), rows, blocks)
            counts = Counter(
                parent_not_found=joined.not_found,
                parent_dropped=joined.dropped,
                carried_messages=int((joined.messages >= fresh).sum()),
                carried_replies=int((joined.replies >= fresh).sum()),
            )
            return _JoinedPart(runs, joined.missing, counts, batches)

        found: list[_JoinedPart] = []
        with ExitStack() as stack:
            writer: CarriedWriter | None = None
            if self._carry and self._carry.target:
                writer = stack.enter_context(CarriedWriter(self._carry.target, store.bits))
            for part in mapped_ahead(one, store.parts(), self._threads):
                if writer:
                    writer.write(part.batches)
                found.append(replace(part, batches=[]))
        pairs.finish()
        if len(carried.known(np.unique(np.concatenate([part.missing for part in found])))):
            raise CrossingError(ELSEWHERE)
        counts = sum((part.counts for part in found), Counter[str]())
        return all_runs([part.runs for part in found]), counts

    def _count(self, rows: Rows) -> None:
        counts = np.bincount(rows.rule, minlength=256)
        replies = np.bincount(rows.rule, rows.answers, minlength=256).astype(np.int64)
        with self._lock:
            self._fates += np.stack([counts, replies], axis=1)

    def _tables(self, pairs: Pairs, pieces: Iterator[Runs], in_order: bool) -> Iterator[pa.Table]:
        done = 0
        # files are read from the beginning to the end: one thread at a time
        threads = 1 if in_order else self._threads
        for table in mapped_ahead(pairs.table, pieces, threads):
            done += len(table)
            self._progress("writing", done, None)
            yield table
