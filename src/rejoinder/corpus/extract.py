"""`extract`: from dumps to pairs, step by step, with the fate of every line counted."""

import datetime
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rejoinder.corpus.carry import Carry, carrying, check_carry
from rejoinder.corpus.engines import ENGINES, Extraction, Outcome, Resources, refuse_addresses
from rejoinder.corpus.manifest import SPLITS, Carried, Counts, Manifest
from rejoinder.corpus.options import (
    Columns,
    ExtractOptions,
    ExtractProgress,
    as_columns,
    parse_date,
)
from rejoinder.corpus.reading.files import find_files
from rejoinder.errors import InputError
from rejoinder.io.files.address_folders import check_ours, new_folder_at, refuse_occupied
from rejoinder.io.files.addresses import Address
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output
from rejoinder.io.files.outputs import refuse_inputs
from rejoinder.io.files.places import Place, as_place, scratch_folder, size_of
from rejoinder.io.formats.amounts import parse_bytes
from rejoinder.io.formats.line_blocks import LONGEST_LINE
from rejoinder.version import VERSION

_LISTED = 3


def extract(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    rules: str = "paper",
    columns: Columns | Mapping[str, str] | str | None = None,
    separator: str | None = None,
    max_line: str | None = None,
    subreddits: Sequence[str] = (),
    since: str | datetime.date | None = None,
    until: str | datetime.date | None = None,
    limit: int | None = None,
    max_reply_count: int | None = None,
    split: tuple[float, float, float] = (95.0, 2.5, 2.5),
    strict: bool = False,
    engine: str = "local",
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    carry: str | Path | None = None,
    overwrite: bool = False,
    progress: ExtractProgress | None = None,
) -> Manifest:
    """Extracts the pairs of dumps of comments, and writes them to a folder.

    If it fails, `out` is as it was before; an address that was about to be replaced may be empty.

    Args:
        sources: files, glob patterns and folders. The files are JSON lines, CSV, TSV or Parquet,
            compressed or not. For `spark` they may be addresses, such as `s3://bucket/RC_*`.
        out: folder to write: Parquet shards and `manifest.json`. It must be new or empty, unless
            `overwrite` is true. For `spark` it may be an address.
        rules: name of the rules that drop comments: `paper` (Yang et al. 2018, the default),
            `polyai`, `none`, or one added with `register_profile`.
        columns: your columns by field, such as `{"id": "msg_id", "parent": "reply_to", "text":
            "message"}`, with `author`, `thread`, `source` and `created` where you have them; or
            `{"message": "question", "reply": "answer"}`; or the same as on the command line, a
            string. None means the fields of the public Reddit dumps.
        separator: character between the columns of CSV and TSV files. None means that it is
            detected in the first line of each file.
        max_line: size beyond which a line is malformed, such as `64MB`. None means 16 MiB.
        subreddits: sources to read, in any case. Empty means all.
        since: first date to read, such as `2021-02-28`, in UTC.
        until: first date that is no longer read.
        limit: largest number of pairs. The first ones in the order of the output are kept.
        max_reply_count: largest number of pairs with the same response, case folded.
        split: shares of train, dev and test, in any unit.
        strict: whether a malformed line is an error. By default it is counted and skipped.
        engine: engine of the query, one of `rejoinder.corpus.engines.ENGINES`.
        master: for `spark`: the address of a cluster's master, `local[4]` for four threads of this
            machine, or the address of a Spark Connect server, `sc://host`. None means this machine.
        memory: memory of the engine, such as `800MB`; None means `2GB`. What does not fit is
            spilled to disk. Reading and writing take about 0.8 GB on top, and a decoder window of
            up to 2 GiB where a dump needs it. With a `master`: memory of each executor; None means
            what the cluster's settings say.
        threads: number of threads of the engine on this machine. None means all cores.
        carry: folder of the comments of earlier extractions, to which those of this one are added;
            it is made if it is missing. Replies find their messages in earlier extractions, and
            messages their replies. The pairs of all of them together are those of one extraction of
            all sources. The same sources again give the same pairs again.
        overwrite: whether a folder that is not empty is replaced.
        progress: callback for progress bars, called from the thread that reads or writes.

    Returns:
        The manifest: what became of every line, and the shards.

    Raises:
        InputError: a file can't be read, no pair comes out (without `carry`), `out` is occupied, or
            a setting has no effect on the engine. With `carry`: it was made with other options, is
            damaged or holds all comments already, or a comment has no thread or answers one of
            another thread.
        BusyError: another process is writing `out` or using `carry`.
        StorageError: `out` can't be written: a full disk, missing rights.
        MissingExtraError: the engine or a decompression library is not installed.
    """
    options = ExtractOptions(
        rules=rules,
        columns=as_columns(columns),
        subreddits=tuple(name.strip().lower() for name in subreddits),
        since=parse_date(since),
        until=parse_date(until),
        limit=limit,
        max_reply_count=max_reply_count,
        split=split,
        strict=strict,
        separator=separator,
        **({} if max_line is None else {"max_line": int(parse_bytes(max_line, "--max-line"))}),
    )
    target, state = as_place(out), None if carry is None else Path(carry)
    progress = progress or (lambda *_: None)
    if state is not None:
        check_carry(state, Path(out), options, engine)
    dumps = [as_place(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    refuse_addresses(engine, [*dumps, target])
    with (
        _output(target, dumps, overwrite) as (files, folder, spill),
        carrying(state, options, files, progress) as carried,
    ):
        opened = ENGINES[engine](Resources(spill, memory, threads, master))
        outcome = opened.extract(Extraction(files, options, carried), folder, progress)
        shutil.rmtree(spill, ignore_errors=True)
        manifest = _manifest(options, carried, outcome)
        if isinstance(folder, Address):
            check_ours(folder)
        manifest.write(folder)
        if carried:
            carried.finish(manifest.counts)
    return manifest


@contextmanager
def _output(
    out: Place, dumps: Sequence[Place], overwrite: bool
) -> Iterator[tuple[Sequence[Place], Place, Path]]:
    """Yields the files of the dumps, the folder to write to, and one for what is spilled.

    The output is claimed before the dumps are looked for.
    """
    if isinstance(out, Address):
        refuse_occupied(out, overwrite=overwrite)
        files = find_files(dumps)
        refuse_inputs(out, files)
        with new_folder_at(out, overwrite=overwrite), scratch_folder() as scratch:
            yield files, out, scratch
        return
    with claim_output(out, overwrite=overwrite):
        files = find_files(dumps)
        with new_folder(out, overwrite=overwrite, inputs=files) as folder:
            spill = folder / "spill"
            spill.mkdir()
            yield files, folder, spill


def _manifest(options: ExtractOptions, carry: Carry | None, outcome: Outcome) -> Manifest:
    report, written = outcome.report, outcome.written
    counts = _counts(options, outcome)
    # pairs may come with later dumps, if there are comments at all
    if not written.rows and not (carry and counts.comments):
        raise InputError(_no_pairs(counts, outcome))
    carried = None
    if carry:
        carried = Carried(
            increment=carry.number,
            comments=carry.comments,
            messages=outcome.carried_messages,
            replies=outcome.carried_replies,
            overruled=outcome.overruled,
        )
    recorded: dict[str, Any] = {
        "columns": dict(options.columns.names),
        "subreddits": options.subreddits,
        "since": options.since,
        "until": options.until,
        "limit": options.limit,
        "max_replies": options.max_reply_count,
        "split": list(options.split),
        **({"separator": options.separator} if options.separator else {}),
        **({"max_line": options.max_line} if options.max_line != LONGEST_LINE else {}),
    }
    return Manifest(
        rejoinder_version=VERSION,
        rules=options.rules,
        options=recorded,
        inputs=tuple(
            {
                "file": file.path.name,
                "bytes": size_of(file.path),
                "comments": file.comments,
                "malformed": file.malformed,
            }
            for file in report.files
        ),
        counts=counts,
        splits={split: written.splits.get(split, 0) for split in SPLITS},
        sources=dict(sorted(written.sources.items())),
        shards=tuple(written.shards),
        malformed=tuple(report.malformed),
        carry=carried,
    )


def _counts(options: ExtractOptions, outcome: Outcome) -> Counts:
    report, fates, written = outcome.report, outcome.fates, outcome.written
    read = sum(file.comments for file in report.files)
    malformed = sum(file.malformed for file in report.files)
    lost = outcome.parent_not_found + outcome.parent_dropped
    return Counts(
        lines=(read // 2 if options.columns.are_pairs else read) + malformed,
        malformed=malformed,
        comments=read,
        duplicates=outcome.duplicates,
        conflicts=outcome.conflicts,
        dropped={name: fates.get(name, 0) for name in options.rule_names},
        kept=fates["kept"],
        without_parent=fates["kept"] - fates["replies"],
        parent_not_found=outcome.parent_not_found,
        parent_dropped=outcome.parent_dropped,
        capped=fates["replies"] - (written.rows - outcome.carried_replies) - lost,
        pairs=written.rows,
        unique_inputs=written.unique_inputs,
        unique_responses=written.unique_responses,
    )


def _no_pairs(counts: Counts, outcome: Outcome) -> str:
    """Returns a message with the fate of the comments and an example of ids that don't match."""
    report = outcome.report
    names = ", ".join(file.path.name for file in report.files[:_LISTED])
    names += " …" if len(report.files) > _LISTED else ""
    if not counts.lines:
        be = "it is" if len(report.files) == 1 else "they are"
        return f"no comments in {names}: {be} empty."
    if not counts.comments:
        first = "".join(
            f" {line.file} line {line.line}: {line.problem}." for line in report.malformed[:1]
        )
        return (
            f"no comments in {names} ({counts.malformed} malformed lines).{first} Files are read "
            "as JSON lines, or by their endings .csv, .tsv and .parquet; see --columns."
        )
    unmatched = ""
    if outcome.unmatched:
        reply, parent = outcome.unmatched
        unmatched = f" For example {reply!r} answers {parent!r}; ids are like {reply!r}."
    dropped = ", ".join(f"{name} {count}" for name, count in counts.dropped.items() if count)
    return (
        f"no pairs in {names}: of {counts.comments} comments the rules dropped "
        f"{sum(counts.dropped.values())} ({dropped or 'none'}); of the rest "
        f"{counts.without_parent} answer no comment, {counts.parent_not_found} a comment that is "
        f"not there, {counts.parent_dropped} a dropped one.{unmatched} See --rules and --columns."
    )
