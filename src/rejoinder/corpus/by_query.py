"""Extraction by the query, step by step: the way of every engine that has none of its own."""

from typing import Any

from rejoinder.corpus import query
from rejoinder.corpus.engines.base import Engine, Extraction, Outcome
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.io.files.places import Place


def by_query(
    engine: Engine, extraction: Extraction, folder: Place, progress: ExtractProgress
) -> Outcome:
    """Reads the comments, joins them, and writes the pairs to `folder`.

    Raises:
        InputError: whatever the reading raises, or the replies form a circle.
    """
    table, report = engine.read("comments", extraction.reading, progress)
    progress("joining", 0, None)
    repeated = engine.keep("repeated", query.repeated_ids(table))
    duplicates, conflicts = engine.rows(query.repeated_counts(repeated)).row(0)
    if duplicates is not None:
        table = engine.keep("unique_comments", query.unique(table, repeated))
    table = _threaded(engine, table)
    fates = _fates(engine, table)
    pairs = query.pairs(table)
    if extraction.max_reply_count is not None:
        pairs = query.capped(pairs, extraction.max_reply_count)
    parts = engine.keep("parts", query.splits(table, extraction.split))
    written = engine.write(query.with_parts(pairs, parts), extraction.limit, folder, progress)
    not_found, dropped = _lost_parents(engine, table, fates["replies"] - written.rows)
    return Outcome(
        report=report,
        duplicates=int(duplicates or 0),
        conflicts=int(conflicts or 0),
        fates=fates,
        parent_not_found=not_found,
        parent_dropped=dropped,
        written=written,
        table=table,
    )


def _threaded(engine: Engine, table: Any) -> Any:
    """Returns the table with a thread for every comment: that of its chain's root if missing."""
    if not engine.rows(table.filter(table.thread.isnull()).limit(1).select("id")).height:
        return table
    roots = engine.keep("roots_0", query.first_roots(table))
    # a chain is at most as long as the table, and each round looks twice as far up
    rounds = int(engine.rows(table.count().as_table()).item()).bit_length() + 1
    for doubling in range(1, rounds + 1):
        roots = engine.keep(f"roots_{doubling % 2}", query.next_roots(roots))
        moved = engine.rows(roots.filter(roots.moved).aggregate(root=roots.root.min())).item()
        roots = roots.drop("moved")
        if moved is None:
            return engine.keep("threaded", query.with_threads(table, roots))
    raise InputError(
        f"the replies of these files form a circle: {moved!r} answers itself by way of others. "
        "Repair them, or give a thread column, --columns thread=…."
    )


def _fates(engine: Engine, table: Any) -> dict[str, int]:
    """Counts comments by broken rule, and the kept ones: all (`kept`) and `replies`."""
    rows = engine.rows(
        table.group_by("rule").aggregate(comments=table.count(), replies=table.parent.count())
    )
    fates: dict[str, int] = {"kept": 0, "replies": 0}
    for rule, comments, replies in rows.iter_rows():
        if rule is None:
            fates |= {"kept": comments, "replies": replies}
        else:
            fates[rule] = comments
    return fates


def _lost_parents(engine: Engine, table: Any, missing: int) -> tuple[int, int]:
    """Counts kept replies without a pair: those whose parent is missing, and was dropped."""
    if not missing:
        return 0, 0
    lost = engine.rows(query.lost_parents(table)).row(0, named=True)
    return int(lost["not_found"] or 0), int(lost["dropped"] or 0)
