"""Dumps to pairs: the steps in order, and what became of every line."""

import datetime
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from rejoinder.corpus import query  # first: it says how to get what extraction needs
from rejoinder.corpus.diagnosis import no_pairs
from rejoinder.corpus.engines import open_engine
from rejoinder.corpus.engines.base import Engine
from rejoinder.corpus.files import find_files, refuse_inside
from rejoinder.corpus.manifest import SPLITS, Counts, Manifest
from rejoinder.corpus.query import Filters
from rejoinder.corpus.readers import Report, read_comments
from rejoinder.corpus.rules import Rule, profile
from rejoinder.corpus.schema import Columns
from rejoinder.corpus.writer import Written, write_shards
from rejoinder.errors import InputError
from rejoinder.files.atomic import new_folder
from rejoinder.files.claims import claim_output
from rejoinder.version import VERSION

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a stage, what it has done, and how much that is in all, if it is known:
`reading` bytes of the files, `joining`, `sorting`, `writing` pairs."""

_FRAME_ROWS = 65_536


@dataclass(frozen=True)
class ExtractOptions:
    """What decides which pairs come out, and what the work may take."""

    rules: str = "paper"
    columns: Columns = field(default_factory=Columns)
    filters: Filters = field(default_factory=Filters)
    limit: int | None = None
    """At most so many pairs: the first of the output's order."""
    max_replies: int | None = None
    """At most so many pairs of one response."""
    split: tuple[float, float, float] = (95.0, 2.5, 2.5)
    """Shares of train, dev and test."""
    strict: bool = False
    engine: str = "duckdb"
    memory: str = "2GB"
    """Bound of the engine; 0.8 GB for reading and writing come on top, and a decoder window of
    up to 2 GiB where a dump needs it."""
    threads: int | None = None
    separator: str | None = None
    """Between the columns of CSV and TSV files; none: found in the first line."""
    overwrite: bool = False

    def __post_init__(self) -> None:
        profile(self.rules)
        if min(self.split) < 0 or sum(self.split) <= 0:
            raise InputError(f"--split {self.split} must be three shares that are not negative.")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InputError(
                f"--separator {self.separator!r}: one character, as ';', and no quote or line end."
            )


def extract(
    dumps: Sequence[str | Path],
    out: Path,
    options: ExtractOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write the pairs of `dumps` to the folder `out`; returns its manifest.

    Args:
        dumps: files, patterns and folders; JSON lines, CSV, TSV or Parquet, compressed or not.
        out: a new or empty folder, or one that `options` allow to be replaced.
        options: none: the rules of the paper on the public Reddit dumps.
        progress: called now and then, from the thread that reads or writes.

    Raises:
        InputError: a file can't be read, no pair comes out, or `out` is occupied.
        BusyError: another process is writing `out`.
        StorageError: `out` can't be written: a full disk, missing rights.
        MissingExtraError: the engine, or what a compression needs, is not installed.

    Whatever is raised, `out` is as it was.
    """
    options = options or ExtractOptions()
    with claim_output(out, overwrite=options.overwrite):
        files = find_files(dumps)
        refuse_inside(files, out)
        with new_folder(out, overwrite=options.overwrite) as folder:
            spill = folder / "spill"
            spill.mkdir()
            engine = open_engine(options.engine, options.memory, options.threads, spill)
            try:
                manifest = _extract(engine, files, folder, options, progress or _silent)
            finally:
                engine.close()
                shutil.rmtree(spill, ignore_errors=True)
            manifest.write(folder)
    return manifest


def _extract(
    engine: Engine, files: Sequence[Path], folder: Path, options: ExtractOptions, progress: Progress
) -> Manifest:
    rules = profile(options.rules)
    report = Report()
    columns = options.columns if _uses_dates(options) else options.columns.without_dates()
    frames = read_comments(
        files, columns, report, strict=options.strict, separator=options.separator
    )
    size = sum(path.stat().st_size for path in files)
    table = engine.ingest(
        "comments",
        _watched(frames, lambda: progress("reading", report.bytes_read, size)),
        lambda comments: query.classified(comments, rules, options.filters),
    )
    progress("joining", 0, None)
    read = sum(file.comments for file in report.files)
    malformed = sum(file.malformed for file in report.files)
    repeated = engine.keep("repeated", query.repeated_ids(table))
    doubles = engine.rows(
        repeated.aggregate(
            ids=repeated.count(), rows=repeated.rows.sum(), different=repeated.different.sum()
        )
    ).row(0, named=True)
    if doubles["ids"]:
        table = engine.keep("unique_comments", query.unique(table, repeated))
    table = _threaded(engine, table)
    fates = _fates(engine, table)
    pairs = query.pairs(table)
    if options.max_replies is not None:
        pairs = query.capped(pairs, options.max_replies)
    parts = engine.keep("parts", query.splits(table, options.split))
    ordered = query.output(pairs, parts)
    if options.limit is not None:
        ordered = ordered.limit(options.limit)
    progress("sorting", 0, None)
    frames = _counted(engine.stream(ordered, _FRAME_ROWS), progress)
    written = write_shards(folder, frames)
    different = int(doubles["different"] or 0)
    lost = _lost_parents(engine, table, fates["replies"] - written.rows)
    counts = Counts(
        lines=(read // 2 if options.columns.are_pairs else read) + malformed,
        malformed=malformed,
        comments=read,
        duplicates=int(doubles["rows"] or 0) - different,
        conflicts=different - doubles["ids"],
        dropped={name: fates.get(name, 0) for name in _rule_names(rules, options)},
        kept=fates["kept"],
        without_parent=fates["kept"] - fates["replies"],
        parent_not_found=lost["not_found"],
        parent_dropped=lost["dropped"],
        capped=fates["replies"] - written.rows - lost["not_found"] - lost["dropped"],
        pairs=written.rows,
        unique_inputs=written.unique_inputs,
        unique_responses=written.unique_responses,
    )
    if not written.rows:
        raise InputError(no_pairs(engine, table, files, counts, report.malformed))
    return _manifest(options, report, counts, written)


def _silent(stage: str, done: int, total: int | None) -> None:
    """No progress."""


def _uses_dates(options: ExtractOptions) -> bool:
    return (options.filters.since, options.filters.until) != (None, None)


def _threaded(engine: Engine, table: Any) -> Any:
    """The table with a thread for every comment; chains are followed where one lacks it."""
    if not engine.rows(table.filter(table.thread.isnull()).limit(1).select("id")).height:
        return table
    roots = engine.keep("roots_0", query.first_roots(table))
    # a chain is no longer than the table, and each round looks twice as far up
    rounds = int(engine.rows(table.count().as_table()).item()).bit_length() + 1
    for doubling in range(1, rounds + 1):
        roots = engine.keep(f"roots_{doubling % 2}", query.next_roots(roots))
        moved = engine.rows(roots.filter(roots.moved).aggregate(root=roots.root.min())).item()
        roots = roots.drop("moved")
        if moved is None:
            return engine.keep("threaded", query.with_threads(table, roots))
    raise InputError(
        f"the replies of these files form a circle: {moved!r} answers itself by way of others. "
        "Mend it, or give a thread column, --columns thread=…."
    )


def _fates(engine: Engine, table: Any) -> dict[str, int]:
    """Comments by the rule that they break, and how many are kept and answer a comment."""
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


def _lost_parents(engine: Engine, table: Any, missing: int) -> dict[str, int]:
    """Kept replies without a pair: those whose parent is absent, those whose was dropped."""
    if not missing:
        return {"not_found": 0, "dropped": 0}
    lost = engine.rows(query.lost_parents(table)).row(0, named=True)
    return {"not_found": int(lost["not_found"] or 0), "dropped": int(lost["dropped"] or 0)}


def _rule_names(rules: Sequence[Rule], options: ExtractOptions) -> list[str]:
    filtered = ["filtered"] if options.filters != Filters() else []
    return filtered + [rule.name for rule in rules]


def _watched(frames: Iterator[pl.DataFrame], seen: Callable[[], None]) -> Iterator[pl.DataFrame]:
    for frame in frames:
        seen()
        yield frame


def _counted(frames: Iterator[pl.DataFrame], progress: Progress) -> Iterator[pl.DataFrame]:
    done = 0
    for frame in frames:
        done += len(frame)
        if done:  # the first frame is empty, and until the second one the engine sorts
            progress("writing", done, None)
        yield frame


def _manifest(
    options: ExtractOptions, report: Report, counts: Counts, written: Written
) -> Manifest:
    said: dict[str, Any] = {
        "columns": dict(options.columns.names),
        **asdict(options.filters),
        "limit": options.limit,
        "max_replies": options.max_replies,
        "split": list(options.split),
        **({"separator": options.separator} if options.separator else {}),
    }
    inputs: list[Mapping[str, Any]] = [
        {
            "file": file.path.name,
            "bytes": file.path.stat().st_size,
            "comments": file.comments,
            "malformed": file.malformed,
        }
        for file in report.files
    ]
    return Manifest(
        rejoinder_version=VERSION,
        rules=options.rules,
        options=said,
        inputs=tuple(inputs),
        counts=counts,
        splits={split: written.splits.get(split, 0) for split in SPLITS},
        sources=dict(sorted(written.sources.items())),
        shards=tuple(written.shards),
        malformed=tuple(report.malformed),
    )


def parse_date(text: str) -> int:
    """Seconds since 1970 of a date, as 2021-02-28, in UTC.

    Raises:
        InputError: it is no date.
    """
    try:
        day = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no date; write it as 2021-02-28.") from None
    return int(day.replace(tzinfo=day.tzinfo or datetime.UTC).timestamp())
