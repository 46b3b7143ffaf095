"""Extraction by the one query, step by step, for engines that compute Ibis expressions."""

from abc import ABC, abstractmethod
from typing import Any

import ibis.expr.types as ir
import polars as pl

from rejoinder.corpus import query
from rejoinder.corpus.engines import Extraction, Outcome
from rejoinder.corpus.options import ExtractProgress
from rejoinder.corpus.reading.readers import Report
from rejoinder.corpus.writer import Written
from rejoinder.errors import InputError
from rejoinder.io.files.places import Place


class QueryEngine(ABC):
    """An engine that keeps tables and computes the expressions of `query` over them."""

    @abstractmethod
    def read(self, extraction: Extraction, progress: ExtractProgress) -> tuple[ir.Table, Report]:
        """Keeps the comments, `query.classified`, in any order, with the counts of the files.

        Raises:
            InputError: see `read_comments`.
        """

    @abstractmethod
    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Computes a table once and keeps it as `name`, replacing a table of that name."""

    @abstractmethod
    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Computes a small result."""

    @abstractmethod
    def write(
        self, pairs: ir.Table, limit: int | None, folder: Place, progress: ExtractProgress
    ) -> Written:
        """Writes pairs to shards in `folder`, in the order `query.ORDER`, at most `limit` of them.

        The rows of each shard and its bytes are those of `writer.write_shards`.
        """

    @abstractmethod
    def close(self) -> None:
        """Drops all tables and frees the resources."""

    def extract(self, extraction: Extraction, folder: Place, progress: ExtractProgress) -> Outcome:
        """Reads the comments, joins them, and writes the pairs to `folder`, see `Engine`."""
        try:
            return self._extract(extraction, folder, progress)
        finally:
            self.close()

    def _extract(self, extraction: Extraction, folder: Place, progress: ExtractProgress) -> Outcome:
        options = extraction.options
        table, report = self.read(extraction, progress)
        progress("joining", 0, None)
        repeated = self.keep("repeated", query.repeated_ids(table))
        duplicates, conflicts = self.rows(query.repeated_counts(repeated)).row(0)
        if duplicates is not None:
            table = self.keep("unique_comments", query.unique(table, repeated))
        table = self._threaded(table)
        fates = self._fates(table)
        pairs = query.pairs(table)
        if options.max_reply_count is not None:
            pairs = query.capped(pairs, options.max_reply_count)
        parts = self.keep("parts", query.splits(table, options.split))
        written = self.write(pairs.join(parts, "thread_id"), options.limit, folder, progress)
        not_found = dropped = 0
        if fates["replies"] > written.rows:
            lost = self.rows(query.lost_parents(table)).row(0)
            not_found, dropped = (int(count or 0) for count in lost)
        unmatched = None
        if not_found and not written.rows:
            unmatched = self.rows(query.without_parents(table).order_by("id").limit(1)).row(0)
        return Outcome(
            report=report,
            duplicates=int(duplicates or 0),
            conflicts=int(conflicts or 0),
            fates=fates,
            parent_not_found=not_found,
            parent_dropped=dropped,
            written=written,
            unmatched=unmatched,
        )

    def _threaded(self, table: Any) -> Any:
        """Returns the table with a thread for every comment: that of its chain's root if missing.

        Raises:
            InputError: the replies form a circle.
        """
        if not self.rows(table.filter(table.thread.isnull()).limit(1).select("id")).height:
            return table
        roots = self.keep("roots_0", query.first_roots(table))
        # a chain is at most as long as the table, and each round looks twice as far up
        rounds = int(self.rows(table.count().as_table()).item()).bit_length() + 1
        for doubling in range(1, rounds + 1):
            roots = self.keep(f"roots_{doubling % 2}", query.next_roots(roots))
            moved = self.rows(roots.filter(roots.moved).aggregate(root=roots.root.min())).item()
            roots = roots.drop("moved")
            if moved is None:
                return self.keep("threaded", query.with_threads(table, roots))
        raise InputError(
            f"the replies of these files form a circle: {moved!r} answers itself by way of others. "
            "Repair them, or give a thread column, `columns='thread=…'`."
        )

    def _fates(self, table: Any) -> dict[str, int]:
        """Counts comments by broken rule, and the kept ones: all (`kept`) and `replies`."""
        rows = self.rows(
            table.group_by("rule").aggregate(comments=table.count(), replies=table.parent.count())
        )
        fates: dict[str, int] = {"kept": 0, "replies": 0}
        for rule, comments, replies in rows.iter_rows():
            if rule is None:
                fates |= {"kept": comments, "replies": replies}
            else:
                fates[rule] = comments
        return fates
