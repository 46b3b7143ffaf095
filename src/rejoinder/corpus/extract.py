"""`extract`: turns dumps into pairs, step by step, and counts what happens to every line.

The counts go into the manifest or, if there is no pair, into the error message.
"""

import datetime
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rejoinder.corpus import convert, engines
from rejoinder.corpus.carry import carrying, check_carry
from rejoinder.corpus.export_options import OPTIONS, ExportOptions, Texts
from rejoinder.corpus.manifest import SPLITS, Counts, Manifest, WordsFile
from rejoinder.corpus.options import (
    DELETED,
    Columns,
    ExtractOptions,
    ExtractProgress,
    as_columns,
    known_pairs,
    parse_date,
)
from rejoinder.corpus.reading.files import find_files
from rejoinder.corpus.reading.readers import columns_of
from rejoinder.corpus.writer import add_columns, write_words
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS
from rejoinder.io.files import addresses
from rejoinder.io.files.addresses import AnyPath, any_path
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output, refuse_inputs
from rejoinder.io.files.storage import first_names, is_database, scratch_folder
from rejoinder.io.files.system import return_freed_memory
from rejoinder.io.formats.compression import LONGEST_LINE
from rejoinder.io.formats.shown import parse_bytes, parse_duration
from rejoinder.version import VERSION

_MEMORY_FOR_EXPORTS = "200MB"


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
    format: str | None = None,  # noqa: A002 as the option is called
    pair: str | None = None,
    min_confidence: float = 0.3,
    linker: convert.Linking | None = None,
    within: str = "10m",
    context: int | None = None,
    language: str | Sequence[str] = (),
    dedupe: bool = False,
    include_private: bool = False,
    mask: str | None = None,
    min_authors: int | None = None,
    engine: str = "local",
    master: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    carry: str | Path | None = None,
    overwrite: bool = False,
    progress: ExtractProgress | None = None,
) -> Manifest:
    """Extracts message/reply pairs from dumps of comments, and writes them to a folder.

    If it fails, `out` stays as it was; but if it is an address to be replaced, it may be empty.

    Args:
        sources: exports of conversations; or files, glob patterns and folders of JSON lines, CSV,
            TSV or Parquet, compressed or not. For `spark` they may be addresses, such as `s3://bucket/RC_*`.
        out: folder to write: Parquet shards and `manifest.json`. It must be new or empty, unless
            `overwrite` is true. For `spark` it may be an address.
        rules: name of the rules that drop comments: `paper` (Yang et al. 2018, the default),
            `polyai`, `none`, or one added with `register_profile`.
        columns: your columns by field, such as `{"id": "msg_id", "parent": "reply_to", "text":
            "message"}`, with `author`, `thread`, `source` and `created` where you have them; or
            `{"message": "question", "reply": "answer"}`; or the same as on the command line, a
            string. None means the fields of the public Reddit dumps or, where a file has none, its
            columns of messages and replies with usual names, such as `prompt` and `completion`.
        separator: character between the columns of CSV and TSV files. None detects it in the
            first line of each file.
        max_line: size beyond which a line is malformed, such as `64MB`. None means 16 MiB.
        subreddits: sources to read, in any case. Empty means all.
        since: first date to read, such as `2021-02-28`, in UTC.
        until: first date that is no longer read.
        limit: largest number of pairs. The first ones in the order of the output are kept.
        max_reply_count: largest number of pairs with the same response, case folded.
        split: shares of train, dev and test, in any unit.
        strict: whether a malformed line is an error. By default it is counted and skipped.
        format: name of the program that wrote an export, one of `rejoinder.exports.FORMATS`.
            None means that it is recognised by content. A source is then the export's file, folder,
            zip or tar archive.
        pair: for exports: `links` uses only the reply links of the export; `adjacent` also pairs a
            message without link with the message before it by another author; `model` uses `linker`
            outside threads. None means `model` (without a linker, `adjacent`) for an export with
            few or no reply links.
        min_confidence: lowest probability of a link of `linker`.
        linker: `rejoinder.links.linker.Linker().stream`, or a function that yields each message in
            order, with the message that it answers or None, and a probability.
        within: most time between a message and the adjacent message that it answers, such as `90s`,
            `10m`, `2h`.
        context: for exports: adds a column `context` to the pairs, a list of up to this many texts
            before the message, oldest first: the message it answers, or else the message before it
            in its thread, or in its channel and `within`, and so on. None adds no column.
        language: for exports: codes of the languages to keep, such as `en` or `["en", "de"]`. Empty
            means all.
        dedupe: for exports: whether to leave out near duplicates of earlier messages.
        include_private: whether to include an export's internal notes and direct messages.
        mask: for exports: `pii` replaces addresses, numbers and keys by their kinds, such as
            `[email]`.
        min_authors: for exports: a model trained on the pairs knows only words that this many
            authors used. None means 5, or 1 for public formats such as `hackernews`.
        engine: engine of the query, one of `rejoinder.corpus.engines.ENGINES`.
        master: for `spark`: the address of a cluster's master, `local[4]` for four threads of this
            machine, or the address of a Spark Connect server, `sc://host`. None means this machine.
        memory: memory of the engine, such as `800MB`; None means `2GB`, or `200MB` for exports with
            separate threads. Data that does not fit is spilled to disk. Reading and writing take
            another 0.6 GB, and a decoder window of up to 2 GiB if a dump needs it. With a `master`:
            memory of each executor; None means the cluster's settings.
        threads: number of threads of the engine on this machine. None means all cores.
        carry: folder with the comments of earlier extractions; this extraction adds its own. It is
            created if missing. Replies find their messages in earlier extractions, and messages
            their replies. Together, the extractions give the pairs of one extraction of all
            sources. Repeating an extraction gives the same pairs.
        overwrite: whether a folder that is not empty is replaced.
        progress: callback for progress bars, called from the thread that reads or writes.

    Returns:
        The manifest, with counts of what happened to the lines, and the shards.

    Raises:
        InputError: a file can't be read, no pair comes out (without `carry`), `out` is occupied, or
            a setting has no effect on the engine. With `carry`: it was made with other options, is
            damaged or holds all comments already, or a comment has no thread or answers one of
            another thread.
        BusyError: another process is writing `out` or using `carry`.
        StorageError: `out` can't be written: disk full, permission denied.
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
        **({} if max_line is None else {"max_line": int(parse_bytes(max_line, "`max_line`"))}),
    )
    target, state = any_path(out), None if carry is None else Path(carry)
    if isinstance(target, Path) and is_database(target):
        raise InputError(f"`out` {out} is a database, which can't be written; name a folder.")
    progress = progress or (lambda *_: None)
    if state is not None:
        check_carry(state, Path(out), options, engine)
    dumps = [any_path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    engines.refuse_addresses(engine, [*dumps, target])
    engines.ENGINES[engine]  # reports a missing extra before any file is read
    chosen = ExportOptions(
        pair=pair,
        min_confidence=min_confidence,
        within=parse_duration(within, "`within`"),
        include_private=include_private,
        mask=mask,
        min_authors=min_authors,
        context=context,
        languages=(language,) if isinstance(language, str) else tuple(language),
        dedupe=dedupe,
    )
    if pair == "model" and linker is None:
        raise InputError(
            "`pair='model'` needs a linker, such as rejoinder.links.linker.Linker().stream."
        )
    exports = convert.exports_among(dumps, format, has_columns=columns is not None)
    if not exports and chosen != ExportOptions():
        raise InputError(
            f"{', '.join(OPTIONS)} are for exports, but none was recognised; name its program with "
            "`format`."
        )
    if context and (state or not isinstance(target, Path)):
        raise InputError(
            "`context` needs all messages and the pairs on this machine; it can't be used with "
            "`carry` or an address."
        )
    resources = engines.Resources(Path(), memory, threads, master)
    task = _Task(
        exports, chosen, linker, options, columns is not None, engine, resources, state, progress
    )
    return _run(task, dumps, target, overwrite)


@dataclass(frozen=True)
class _Task:
    """The inputs and options of an extraction."""

    exports: Sequence[convert.Export]
    of_exports: ExportOptions
    linker: convert.Linking | None
    options: ExtractOptions
    has_columns: bool
    engine: str
    resources: engines.Resources
    state: Path | None
    progress: ExtractProgress


# Short functions on purpose: when out of memory, Python 3.11 tries for ever to leave a `with` block
# after the 256th instruction of its function.
def _run(task: _Task, dumps: Sequence[AnyPath], target: AnyPath, overwrite: bool) -> Manifest:
    with _output(target, dumps, task.exports, overwrite) as (files, folder, spill):
        placed = replace(task, resources=replace(task.resources, spill=spill))
        return _into(folder, placed, files)


def _into(folder: AnyPath, task: _Task, files: Sequence[AnyPath]) -> Manifest:
    options, engine, resources = task.options, task.engine, task.resources
    converted = _converted(task, resources.spill)
    if converted:
        files, options = [one.file for one in converted], replace(options, columns=convert.COLUMNS)
        return_freed_memory()
        apart = all(one.threads_are_apart for one in converted)
        if engine == "local" and not task.state and not apart:
            engine = "duckdb"  # the local engine would switch to it after reading all
        if resources.memory is None:
            resources = replace(resources, parts_memory=_MEMORY_FOR_EXPORTS)
    elif not task.has_columns and task.state is None and isinstance(files[0], Path):
        options = replace(options, columns=known_pairs(columns_of(files[0])) or Columns())
    opened = engines.ENGINES[engine](resources)
    return _write(folder, task, opened, engines.Extraction(files, options), converted)


def _converted(task: _Task, folder: Path) -> list[convert.Converted]:
    """Writes the messages of exports to files in `folder`."""
    texts, before = Texts(task.of_exports), 0
    converted: list[convert.Converted] = []

    def shown(done: int) -> None:
        task.progress("messages", before + done, None)

    for number, (path, export) in enumerate(task.exports):
        file = folder / f"export-{number}.jsonl"
        made = convert.convert(
            path,
            export,
            task.of_exports,
            texts,
            file,
            shown,
            linker=task.linker,
            strict=task.options.strict,
        )
        converted.append(made)
        before += made.counts.messages
    return converted


def _write(
    folder: AnyPath,
    task: _Task,
    opened: engines.Engine,
    extraction: engines.Extraction,
    converted: Sequence[convert.Converted],
) -> Manifest:
    with carrying(task.state, extraction.options, extraction.files, task.progress) as carried:
        outcome = opened.extract(replace(extraction, carry=carried), folder, task.progress)
        written, turns = outcome.written, task.of_exports.context
        found = carried is None and any(one.counts.modelled for one in converted)
        if (found or turns) and isinstance(folder, Path):
            messages = [one.file for one in converted]
            written.shards = add_columns(folder, written.shards, messages, turns)
        shutil.rmtree(task.resources.spill, ignore_errors=True)
        words = [one.words for one in converted if one.words is not None]
        file = write_words(set().union(*words), folder) if words else None
        manifest = _summary(extraction.options, outcome, converted, file)
        if isinstance(folder, addresses.Address):
            addresses.check_ours(folder)
        manifest.write(folder)
        if carried:
            carried.finish(manifest.counts)
    return manifest


@contextmanager
def _output(
    out: AnyPath, dumps: Sequence[AnyPath], exports: Sequence[convert.Export], overwrite: bool
) -> Iterator[tuple[Sequence[AnyPath], AnyPath, Path]]:
    """Yields the files of the dumps, the folder to write to, and a folder for spilled data.

    The output is locked before the dumps are searched.
    """
    found = [path for path, _ in exports]
    if isinstance(out, Path):
        with claim_output(out, overwrite=overwrite):
            files = found or find_files(dumps)
            with new_folder(out, overwrite=overwrite, inputs=files) as folder:
                spill = folder / "spill"
                spill.mkdir()
                yield files, folder, spill
        return
    addresses.refuse_occupied(out, overwrite=overwrite)
    files = found or find_files(dumps)
    refuse_inputs(out, files)
    with addresses.new_folder_at(out, overwrite=overwrite), scratch_folder() as scratch:
        yield files, out, scratch


_KEEP_ALL = "`rules='none'` keeps all that is not empty or deleted"


def _summary(
    options: ExtractOptions,
    outcome: engines.Outcome,
    converted: Sequence[convert.Converted],
    words: WordsFile | None,
) -> Manifest:
    """Returns the manifest of an extraction.

    Raises:
        InputError: there is no pair; the message says why.
    """
    report, written = outcome.report, outcome.written
    for file, export in zip(report.files, converted, strict=False):
        file.path = export.path
        file.malformed += export.counts.malformed
        report.add_malformed(export.malformed)
    counts = _counts(options, outcome)
    # later dumps may bring pairs, if there are comments at all
    if not written.rows and not (outcome.carried and counts.comments):
        raise InputError(_no_pairs(counts, outcome, converted))
    recorded: dict[str, Any] = {"columns": dict(options.columns.names)}
    names = [file.path.name for file in report.files]
    sizes = [export.bytes for export in converted]
    if converted:
        recorded = converted[0].options.recorded
    else:
        sizes = [addresses.size_of(file.path) for file in report.files]
    recorded |= {
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
            {"file": name, "bytes": size, "comments": file.comments, "malformed": file.malformed}
            for file, size, name in zip(report.files, sizes, names, strict=True)
        ),
        counts=counts,
        splits={split: written.splits.get(split, 0) for split in SPLITS},
        sources=dict(sorted(written.sources.items())),
        shards=tuple(written.shards),
        malformed=tuple(report.malformed),
        carry=outcome.carried,
        exports=tuple(export.counts for export in converted),
        words=words,
    )


def _counts(options: ExtractOptions, outcome: engines.Outcome) -> Counts:
    report, fates, written = outcome.report, outcome.fates, outcome.written
    read = sum(file.comments for file in report.files)
    malformed = sum(file.malformed for file in report.files)
    lost = outcome.parent_not_found + outcome.parent_dropped
    carried_replies = outcome.carried.replies if outcome.carried else 0
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
        capped=fates["replies"] - (written.rows - carried_replies) - lost,
        pairs=written.rows,
        unique_inputs=written.unique_inputs,
        unique_responses=written.unique_responses,
    )


def _no_pairs(
    counts: Counts, outcome: engines.Outcome, converted: Sequence[convert.Converted]
) -> str:
    """Returns an error message with counts of comments, and an example of ids that don't match."""
    names = first_names(file.path.name for file in outcome.report.files)
    if not converted and not counts.lines:
        return f"no comments in {names} (empty)."
    if not converted and not counts.comments:
        first = outcome.report.malformed[0]
        return (
            f"no comments in {names} ({counts.malformed} malformed lines). {first.file} line "
            f"{first.line}: {first.problem}. Files are read as JSON lines, or by their endings "
            ".csv, .tsv and .parquet; see `columns`."
        )
    fates = (
        f"the rules dropped {_sum(counts.dropped)}; of the rest {counts.without_parent} answer "
        f"none, {counts.parent_not_found} one that is not there, {counts.parent_dropped} a dropped "
        "one"
    )
    if converted:
        left_out: Counter[str] = Counter()
        for export in converted:
            left_out.update(export.counts.dropped)
        titles = ", ".join(dict.fromkeys(FORMATS[one.counts.format].title for one in converted))
        return (
            f"no pairs in {names}: of {sum(one.counts.messages for one in converted)} messages "
            f"({titles}) {_sum(left_out)} are left out, {fates}. See `rules` ('none' keeps most), "
            "`pair` and `within`."
        )
    unmatched = ""
    if outcome.unmatched:
        reply, parent = outcome.unmatched
        unmatched = f" For example {reply!r} answers {parent!r}; ids are like {reply!r}."
    see = f"{_KEEP_ALL}." if dropped_most(counts) else "See `rules` and `columns`."
    return f"no pairs in {names}: of {counts.comments} comments {fates}.{unmatched} {see}"


def dropped_most(counts: Counts) -> str:
    """Returns a sentence on the rules, if they dropped half of the comments; otherwise empty."""
    dropped = Counter(counts.dropped)
    del dropped["filtered"], dropped[DELETED.name]  # which no choice of rules keeps
    if 2 * dropped.total() < max(counts.comments, 1):
        return ""
    return f"the rules dropped {_sum(dropped)} of {counts.comments} comments; {_KEEP_ALL}"


def _sum(numbers: Mapping[str, int]) -> str:
    """Returns the sum of counts, followed by each count and its name.

    >>> _sum({"bot": 2, "empty": 0, "private": 1})
    '3 (bot 2, private 1)'
    """
    parts = ", ".join(f"{name} {count}" for name, count in numbers.items() if count)
    return f"{sum(numbers.values())} ({parts})" if parts else "0"
