"""The default engine, which partitions comments by a hash of their thread while reading.

A message and its reply share a thread, so each part is joined and sorted alone, on 64-bit hashes
of ids. `rows` turns comments into numbers, `store` keeps them and those of earlier extractions in
memory or on disk, and `join` pairs the comments of a part and puts the pairs of all parts into the
order of the output. This module runs the steps and resolves repeated ids.

DuckDB takes over if comments can't be partitioned: comments without a thread or with a parent in
another thread, or a limit on replies with the same text, which needs all pairs.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rejoinder.corpus.carry import Carry
from rejoinder.corpus.engines import Extraction, Outcome, Resources
from rejoinder.corpus.engines.duckdb import LEAST_PER_THREAD, DuckDBEngine, counted
from rejoinder.corpus.engines.local import join as joining
from rejoinder.corpus.engines.local import store
from rejoinder.corpus.manifest import Carried
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.reading.columns import Hashes
from rejoinder.corpus.reading.readers import BLOCK_BYTES, Report, mapped_ahead, read_comments
from rejoinder.corpus.writer import write_shards
from rejoinder.errors import InputError
from rejoinder.io.files.addresses import AnyPath, size_of
from rejoinder.io.files.system import return_freed_memory
from rejoinder.io.formats.shown import parse_bytes

_OLD = "_old"
_ORDER = ("text", "parent", "thread", "source", "rule")
"""The columns by which `query.unique` chooses a row."""


@dataclass(frozen=True)
class Doubles:
    """The removed rows and how many there are."""

    duplicates: int
    """Rows that repeat another row."""
    conflicts: int
    """Rows that differ from another row with the same id."""
    gone: Mapping[int, NDArray[np.int64]]
    """Rows to leave out, by part."""
    carried: Hashes
    """Hashes of the ids that carried comments have, in increasing order."""
    overruled: int
    """Number of carried ids for which one extraction of all dumps might have kept a new row."""


def find_doubles(
    held: store.Store, ids: Hashes, rules: list[str], carried: store.CarriedComments, known: Hashes
) -> Doubles:
    """Compares the rows with the same id as the query of all engines does; carried ones stay.

    `ids` are the hashes of all ids, `known` those of carried comments, both in increasing order;
    `rules` are the names of the rules.
    """
    repeated = np.unique(ids[1:][ids[1:] == ids[:-1]])
    wanted = np.union1d(repeated, known)
    if not len(wanted):
        return Doubles(0, 0, {}, store.NO_HASHES, 0)
    given = _rows_with(wanted, held, rules)
    # as `query.unique`: strings are compared as bytes, and null is the largest
    best = given.sort("id", *_ORDER, nulls_last=True).unique("id", keep="first")
    different = given.select("id", *_ORDER).unique().height
    duplicates, conflicts = given.height - different, different - best.height
    rows, block = carried.comments(known)
    older = _frame(0, np.arange(len(rows)), rows, [block], rules)
    both = given.join(older, on="id", suffix=_OLD)
    equal = both.filter(_same_content()).get_column("id").n_unique()
    ids_of_both = both.get_column("id").unique()
    left = best.join(both, on=["part", "place"], how="anti")
    gone = given.join(left, on=["part", "place"], how="anti")
    by_part = gone.partition_by("part", as_dict=True)
    return Doubles(
        duplicates + equal,
        conflicts + len(ids_of_both) - equal,
        {int(key[0]): frame.get_column("place").to_numpy() for key, frame in by_part.items()},
        np.unique(both.get_column("hash").to_numpy()),
        _overruled(best, older),
    )


def _same_content() -> pl.Expr:
    """Whether a row has the content of the carried one. Of dropped ones the text is not known."""
    equal = [pl.col(name).eq_missing(pl.col(f"{name}{_OLD}")) for name in _ORDER if name != "text"]
    text = pl.col("rule").is_not_null() | (pl.col("text") == pl.col(f"text{_OLD}"))
    return pl.all_horizontal(*equal, text)


def _overruled(best: pl.DataFrame, older: pl.DataFrame) -> int:
    """Counts the carried comments that one extraction over everything might not have kept."""
    pairs = best.join(older, on="id", suffix=_OLD)
    revived = pl.col("rule").is_null() & pl.col(f"rule{_OLD}").is_not_null()
    before = pl.lit(False)
    for name in reversed(_ORDER):
        mine, old = pl.col(name), pl.col(f"{name}{_OLD}")
        less = mine.is_not_null() & (old.is_null() | (mine < old))
        before = less | (mine.eq_missing(old) & before)
    lost = pl.col(f"rule{_OLD}").is_null() & before
    return pairs.filter(revived | lost.fill_null(False)).height


def _rows_with(hashes: Hashes, held: store.Store, rules: list[str]) -> pl.DataFrame:
    """Returns the rows whose ids have the hashes, which are in increasing order."""
    frames = []
    for part in held.parts:
        rows, blocks = held.part(part)
        if len(found := np.flatnonzero(store.among(rows.id, hashes))):
            frames.append(_frame(part, found, rows[found], blocks, rules))
    return pl.concat(frames)


def _frame(
    part: int, places: NDArray[np.int64], rows: store.Rows, blocks: Any, rules: list[str]
) -> pl.DataFrame:
    """Returns rows with the columns of `query.classified`, their hash, part and place in it."""
    names = pl.Series([None, *rules], dtype=pl.String)
    strings = {name: rows.strings(blocks, name).to_polars() for name in store.STRINGS}
    return pl.DataFrame(strings).with_columns(
        parent=pl.when(pl.Series(rows.answers)).then("parent"),
        rule=names.gather(rows.rule),
        part=pl.lit(part, pl.Int64),
        place=pl.Series(places, dtype=pl.Int64),
        hash=pl.Series(rows.id, dtype=pl.UInt64),
    )


_STORE_SHARE = 0.5
"""Share of the memory for comments. The rest is for joining and for the output."""
_PIECE_ROWS = 65_536
_WRITER_BYTES = 1 << 29
"""The `--memory` for each shard that is written at a time: a shard's rows take 60 MB and more."""
_GROWTH = 8
"""Bytes of a comment in memory by its bytes in a compressed dump; by those of plain text 1."""
_PLAIN = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")
_BLOCK_SHARE, _LEAST_BLOCK = 128, 1 << 20
"""Part of the memory that a parsed block is, and its least bytes."""
_PARTS = (4, store.BITS)
"""Least and largest number of parts, as powers of two."""


class LocalEngine(DuckDBEngine):
    """Joins each part of the comments alone, and all of them by the query where it must be."""

    def __init__(self, resources: Resources) -> None:
        """Checks what the engine may use, see `Opener`."""
        super().__init__(resources)
        given = resources.parts_memory
        self._parts_memory = self.memory if given is None else parse_bytes(given)
        most = int(self._parts_memory // LEAST_PER_THREAD)
        self._parts_threads = max(1, min(self.threads, most))

    def extract(
        self, extraction: Extraction, folder: AnyPath, progress: ExtractProgress
    ) -> Outcome:
        """Extracts by parts, or by the query where comments can't be parted.

        Raises:
            InputError: they can't be parted, and comments of earlier extractions are carried.
        """
        if extraction.options.max_reply_count is None:
            spill = self.spill / "parts"
            spill.mkdir()
            try:
                return self._by_parts(extraction, spill, folder, progress)
            except store.CrossingError as error:
                if extraction.carry is not None:
                    raise InputError(
                        f"`carry` can't be used with these comments: {error}. Name a column that "
                        "holds the thread of each comment, `columns='thread=…'`, or extract all "
                        "files together, without `carry`."
                    ) from None
            finally:
                shutil.rmtree(spill, ignore_errors=True)
        return super().extract(extraction, folder, progress)

    def _by_parts(
        self, extraction: Extraction, spill: Path, folder: AnyPath, progress: ExtractProgress
    ) -> Outcome:
        """Reads, joins and writes, with data that does not fit in `spill`.

        Raises:
            CrossingError: the comments can't be parted by their threads.
        """
        options, carry, report = extraction.options, extraction.carry, Report()
        rules = options.rule_names
        with ThreadPoolExecutor(1) as other:
            # meanwhile the first comments are read: Ibis takes a fifth of a second
            opened = other.submit(store.Classifier, options, lasting=carry is not None)
            held = self._read(extraction, report, spill, opened, progress)
        classifier = opened.result()
        ids = held.finish()
        progress("joining", 0, None)
        return_freed_memory()
        carried = store.CarriedComments(carry.files if carry else (), held.bits)
        known = carried.known(ids)
        if carry and len(known) and len(known) == len(np.unique(ids)):
            raise carry.nothing_new()
        doubles = find_doubles(held, ids, rules, carried, known)
        ids = ids[~store.among(ids, doubles.carried)]
        # the strings of carried comments are not kept in memory
        files = joining.PairsInFiles(spill) if held.spilled or carried else None
        parts = self._join(held, ids, doubles, carried, classifier, files, carry)
        del ids  # 8 bytes a comment, which writing does not need
        pairs = files or joining.PairsInMemory(parts, held.blocks)
        held.drop_files()
        progress("sorting", 0, None)
        pieces = joining.in_pieces([part.runs for part in parts], _PIECE_ROWS, options.limit)
        parts = [replace(part, runs=part.runs.clear()) for part in parts]
        # files are read from the beginning to the end: by one thread
        tables = mapped_ahead(pairs.table, pieces, 1 if files else self._parts_threads)
        writers = max(1, min(self._parts_threads, int(self._parts_memory // _WRITER_BYTES)))
        written = write_shards(folder, counted(tables, progress), writers)
        counts = sum((part.counts for part in parts), Counter[str | int]())
        of_carry = (counts["carried_messages"], counts["carried_replies"], doubles.overruled)
        fates = {rule: counts[number] for number, rule in enumerate(rules, 1)}
        return Outcome(
            report=report,
            duplicates=doubles.duplicates,
            conflicts=doubles.conflicts,
            fates={**fates, "kept": counts[store.KEPT], "replies": counts["replies"]},
            parent_not_found=counts["parent_not_found"],
            parent_dropped=counts["parent_dropped"],
            written=written,
            unmatched=next((part.unmatched for part in parts if part.unmatched), None),
            carried=Carried(carry.number, carry.comments, *of_carry) if carry else None,
        )

    def _read(
        self,
        extraction: Extraction,
        report: Report,
        spill: Path,
        classifier: Future[store.Classifier],
        progress: ExtractProgress,
    ) -> store.Store:
        size, options = sum(map(size_of, extraction.files)), extraction.options
        plain = sum(size_of(path) for path in extraction.files if path.name.endswith(_PLAIN))
        packed = size - plain + (extraction.carry.bytes if extraction.carry else 0)
        need = (plain + packed * _GROWTH) / (self._parts_memory / (4 * self._parts_threads + 4))
        bits = int(np.clip(np.ceil(np.log2(max(need, 1))), *_PARTS))
        held = store.Store(int(self._parts_memory * _STORE_SHARE), bits, spill, self._parts_threads)

        def in_parts(comments: pa.RecordBatch) -> tuple[store.RowsInParts, store.Block]:
            rows, block = classifier.result()(comments)
            return rows.in_parts(bits), block

        size_of_block = int(np.clip(self._parts_memory // _BLOCK_SHARE, _LEAST_BLOCK, BLOCK_BYTES))
        read = read_comments(extraction.files, options, report, in_parts, size_of_block)
        for piece, block in read:
            progress("reading", report.bytes_read, size)
            held.add(piece, block)
        return held

    def _join(
        self,
        held: store.Store,
        ids: Hashes,
        doubles: Doubles,
        carried: store.CarriedComments,
        classifier: store.Classifier,
        files: joining.PairsInFiles | None,
        carry: Carry | None,
    ) -> list[joining.Joined]:
        """Joins all parts, and writes their comments for later extractions.

        `ids` are the hashes of the ids that only this extraction has.
        """
        target = carry.target if carry else None

        def one(part: int) -> tuple[joining.Joined, list[pa.RecordBatch]]:
            rows, blocks = held.part(part)
            if part in doubles.gone:
                rows.rule[doubles.gone[part]] = store.GONE
            batches = store.carried_batches(part, held.bits, rows, blocks) if target else []
            fresh = len(rows)
            if carried:
                older, block = carried.part(part, rows, ids)
                older.which[:] = len(blocks)
                rows, blocks = store.concatenated([rows, older]), [*blocks, block]
            joined = joining.join(part, rows, blocks, fresh, classifier.splits)
            if store.among(joined.missing, ids).any():
                raise store.CrossingError(store.ELSEWHERE)
            if files:
                files.write(part, joined, blocks)
                joined = replace(joined, replies=joining.NOWHERE, messages=joining.NOWHERE)
            return joined, batches

        found: list[joining.Joined] = []
        file = store.arrow_file(target, store.SCHEMA, store.LASTING) if target else nullcontext()
        with file as writer:
            for joined, batches in mapped_ahead(one, held.parts, self._parts_threads):
                if writer:
                    for batch in batches:
                        writer.write_batch(batch)
                found.append(joined)
        if len(carried.known(np.unique(np.concatenate([part.missing for part in found])))):
            raise store.CrossingError(store.ELSEWHERE)
        return found
