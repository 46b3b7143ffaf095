"""The manifest of an extraction, from its outcome; or why there is no pair."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rejoinder.corpus.carry import Carry
from rejoinder.corpus.convert import Converted
from rejoinder.corpus.engines import Outcome
from rejoinder.corpus.manifest import SPLITS, Carried, Counts, ExportCounts, Manifest, WordsFile
from rejoinder.corpus.options import DELETED, ExtractOptions
from rejoinder.errors import InputError
from rejoinder.exports import FORMATS
from rejoinder.io.files.addresses import size_of
from rejoinder.io.formats.compression import LONGEST_LINE
from rejoinder.version import VERSION

_LISTED = 3
_KEEP_ALL = "`rules='none'` keeps all that is not empty or deleted"


def summary(
    options: ExtractOptions,
    carry: Carry | None,
    outcome: Outcome,
    converted: Sequence[Converted] = (),
    words: WordsFile | None = None,
) -> Manifest:
    """Returns the manifest of an extraction.

    Raises:
        InputError: there is no pair, which the message explains.
    """
    report, written = outcome.report, outcome.written
    for file, export in zip(report.files, converted, strict=False):
        file.path = export.path
        file.malformed += export.counts.malformed
        report.add_malformed(export.malformed)
    counts = _counts(options, outcome)
    # pairs may come with later dumps, if there are comments at all
    if not written.rows and not (carry and counts.comments):
        raise InputError(_no_pairs(counts, outcome, converted))
    carried = None
    if carry:
        carried = Carried(
            increment=carry.number,
            comments=carry.comments,
            messages=outcome.carried_messages,
            replies=outcome.carried_replies,
            overruled=outcome.overruled,
        )
    if converted:
        inputs = [(export.path.name, export.bytes) for export in converted]
    else:
        inputs = [(file.path.name, size_of(file.path)) for file in report.files]
    recorded: dict[str, Any] = {
        **(
            converted[0].options.recorded if converted else {"columns": dict(options.columns.names)}
        ),
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
            for file, (name, size) in zip(report.files, inputs, strict=True)
        ),
        counts=counts,
        splits={split: written.splits.get(split, 0) for split in SPLITS},
        sources=dict(sorted(written.sources.items())),
        shards=tuple(written.shards),
        malformed=tuple(report.malformed),
        carry=carried,
        exports=tuple(export.counts for export in converted),
        words=words,
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


def _no_pairs(counts: Counts, outcome: Outcome, converted: Sequence[Converted]) -> str:
    """Returns a message with the fate of the comments and an example of ids that don't match."""
    report = outcome.report
    names = ", ".join(file.path.name for file in report.files[:_LISTED])
    names += " …" if len(report.files) > _LISTED else ""
    if not converted and not counts.lines:
        be = "it is" if len(report.files) == 1 else "they are"
        return f"no comments in {names}: {be} empty."
    if not converted and not counts.comments:
        first = "".join(
            f" {line.file} line {line.line}: {line.problem}." for line in report.malformed[:1]
        )
        return (
            f"no comments in {names} ({counts.malformed} malformed lines).{first} Files are read "
            "as JSON lines, or by their endings .csv, .tsv and .parquet; see `columns`."
        )
    fates = (
        f"the rules dropped {_sum(counts.dropped)}; of the rest {counts.without_parent} answer "
        f"none, {counts.parent_not_found} one that is not there, {counts.parent_dropped} a dropped "
        "one"
    )
    if converted:
        return _no_pairs_of_exports(names, fates, [one.counts for one in converted])
    unmatched = ""
    if outcome.unmatched:
        reply, parent = outcome.unmatched
        unmatched = f" For example {reply!r} answers {parent!r}; ids are like {reply!r}."
    see = f"{_KEEP_ALL}." if dropped_most(counts) else "See `rules` and `columns`."
    return f"no pairs in {names}: of {counts.comments} comments {fates}.{unmatched} {see}"


def dropped_most(counts: Counts) -> str:
    """Returns a sentence that names the rules that dropped half of the comments; else nothing."""
    dropped = Counter(counts.dropped)
    del dropped["filtered"], dropped[DELETED.name]  # which no choice of rules keeps
    if 2 * dropped.total() < max(counts.comments, 1):
        return ""
    return f"the rules dropped {_sum(dropped)} of {counts.comments} comments; {_KEEP_ALL}"


def _no_pairs_of_exports(names: str, fates: str, exports: Sequence[ExportCounts]) -> str:
    left_out: Counter[str] = Counter()
    for export in exports:
        left_out.update(export.dropped)
    titles = ", ".join(dict.fromkeys(FORMATS[export.format].title for export in exports))
    return (
        f"no pairs in {names}: of {sum(export.messages for export in exports)} messages "
        f"({titles}) {_sum(left_out)} are left out, {fates}. See `rules` "
        "('none' keeps most), `pair` and `within`."
    )


def _sum(numbers: Mapping[str, int]) -> str:
    """Returns the sum of numbers, with what they count.

    >>> _sum({"bot": 2, "empty": 0, "private": 1})
    '3 (bot 2, private 1)'
    """
    parts = ", ".join(f"{name} {count}" for name, count in numbers.items() if count)
    return f"{sum(numbers.values())} ({parts})" if parts else "0"
