"""Explains why an extraction found no pairs."""

from collections.abc import Sequence
from typing import Any

from rejoinder.corpus import query
from rejoinder.corpus.engines.base import Engine
from rejoinder.corpus.manifest import Counts, Malformed
from rejoinder.io.files.places import Place

_LISTED = 3


def no_pairs(
    engine: Engine,
    table: Any,
    files: Sequence[Place],
    counts: Counts,
    malformed: Sequence[Malformed],
) -> str:
    """Returns a message with the fate of the comments and an example of ids that don't match."""
    names = ", ".join(path.name for path in files[:_LISTED])
    names += " …" if len(files) > _LISTED else ""
    if not counts.lines:
        return f"no comments in {names}: {'it is' if len(files) == 1 else 'they are'} empty."
    if not counts.comments:
        first = next((f" {line.file} line {line.line}: {line.problem}." for line in malformed), "")
        return (
            f"no comments in {names} ({counts.malformed} malformed lines).{first} Files are read "
            "as JSON lines, or by their endings .csv, .tsv and .parquet; see --columns."
        )
    dropped = ", ".join(f"{name} {count}" for name, count in counts.dropped.items() if count)
    return (
        f"no pairs in {names}: of {counts.comments} comments the rules dropped "
        f"{counts.comments - counts.kept - counts.duplicates - counts.conflicts} "
        f"({dropped or 'none'}); of the rest {counts.without_parent} answer no comment, "
        f"{counts.parent_not_found} a comment that is not there, {counts.parent_dropped} a dropped "
        f"one.{_unmatched(engine, table) if counts.parent_not_found else ''} See --rules and "
        "--columns."
    )


def _unmatched(engine: Engine, table: Any) -> str:
    """Returns a parent that is no comment's id, with a similar id if there is one."""
    near = engine.rows(query.near_misses(table).limit(1))
    if len(near):
        reply, parent, like = near.row(0)
        return f" For example {reply!r} answers {parent!r}, and there is {like!r}."
    lost = query.without_parents(table)
    reply, parent = engine.rows(lost.order_by("id").limit(1)).row(0)
    return f" For example {reply!r} answers {parent!r}; ids are like {reply!r}."
