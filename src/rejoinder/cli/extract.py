"""`rejoinder extract`: finds message/reply pairs in dumps of comments."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar
from rejoinder.corpus.engines import ENGINES
from rejoinder.corpus.options import PAIR_FIELDS, PROFILES, profile
from rejoinder.errors import InputError, require
from rejoinder.exports import FORMATS

if TYPE_CHECKING:
    from rejoinder.corpus.manifest import Carried, ExportCounts, Manifest


@options.prints("json", "tsv")
def extract(
    dumps: Annotated[list[str], typer.Argument()],
    out: Annotated[str, typer.Option(metavar="<path>")],
    rules: Annotated[str, f"Rules that drop comments: {', '.join(PROFILES)}."] = "paper",
    columns: str | None = None,
    separator: str | None = None,
    max_line: Annotated[str | None, typer.Option(metavar="SIZE")] = None,
    subreddits: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    max_reply_count: Annotated[int | None, typer.Option(min=1)] = None,
    split: str = "95,2.5,2.5",
    engine: Annotated[str, f"One of: {', '.join(ENGINES)}."] = "local",
    master: options.MasterOption = None,
    memory: str | None = None,
    threads: options.ThreadsOption = None,
    carry: Annotated[Path | None, typer.Option(metavar="STATE")] = None,
    strict: bool = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"Program of an export: {', '.join(FORMATS)}. Default: recognised by content.",
        ),
    ] = None,
    pair: Annotated[str | None, typer.Option(metavar="links|adjacent|model")] = None,
    min_confidence: Annotated[float, typer.Option(min=0, max=1)] = 0.3,
    links: options.LinksOption = None,
    within: str = "10m",
    context: Annotated[int | None, typer.Option(min=1, metavar="N")] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE")] = None,
    dedupe: bool = False,
    include_private: bool = False,
    mask: Annotated[str | None, typer.Option(metavar="pii")] = None,
    min_authors: Annotated[int | None, typer.Option(min=1)] = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Find the message/reply pairs in dumps of comments.

    Args:
        dumps: Exports of conversations (files, folders, zip); or JSON lines, CSV, TSV or Parquet
            files, folders of them, patterns. - is standard input. With --engine spark also
            addresses, such as s3://bucket/RC_*.
        out: Folder to write: Parquet shards and manifest.json.
        columns: Your columns: id=…,parent=…,text=…[,author=…,thread=…,source=…,created=…], or
            message=…,reply=…. Numbers from 1 for a table without a header.
        separator: Character between the columns of CSV and TSV files. Default: detected in the
            first line.
        max_line: Longest line, such as 64MB; longer lines are malformed. Default: 16MiB.
        subreddits: Read only these, separated by commas.
        since: Read only comments from this date on, such as 2021-02-28.
        until: Read only comments before this date.
        limit: Maximum number of pairs.
        max_reply_count: Maximum number of pairs with the same reply.
        split: Shares of train, dev and test.
        memory: Memory of the engine, at least 150MB; with --master, of each executor. Default: 2GB,
            for exports 200MB, or the cluster's settings. Reading and writing take 0.6 GB more.
        carry: Folder with the comments of earlier extractions, to extract dumps month by month: new
            comments can answer them, and are added.
        strict: Stop at a malformed line.
        pair: How messages of exports are linked: links (stated in the export), adjacent (else the
            message before, by another author) or model (else predicted by a network). Default:
            model where few or no messages have a link.
        min_confidence: Minimum probability of a link that the model predicts.
        within: Maximum time between adjacent messages outside threads: 90s, 10m, 2h.
        context: Keep the N turns before a message of an export, in a column context.
        language: Keep messages of an export in these languages: en, or en,de.
        dedupe: Drop messages of an export that say nearly the same as an earlier message.
        include_private: Keep internal notes, private channels and direct messages of exports.
        mask: Replace mail addresses, phone numbers, keys … of exports.
        min_authors: Models trained on an export know only words used by at least this many authors.
            Default: 5; use 1 for public conversations.

    Examples:
        rejoinder extract slack-export.zip --out pairs/
        rejoinder extract chat.txt --out pairs/ --rules none --context 4
        rejoinder extract chat.txt --out pairs/ --language en --dedupe
        rejoinder extract RC_2015-01.zst RC_2015-02.zst --out pairs/
        rejoinder extract dumps/ --out pairs/ --subreddits AskReddit,college
        rejoinder extract faq.tsv --out faq/ --rules none --columns message=q,reply=a
        rejoinder extract mail.csv --out pairs/ --columns id=id,parent=to,text=body
        rejoinder extract RC_2015-03.zst --out pairs-2015-03/ --carry carried/
        rejoinder extract dumps/ --out pairs/ --engine spark --master spark://h:7077
        rejoinder extract 's3://logs/RC_*.zst' --out s3://logs/pairs --engine spark
    """
    require("extract", "polars")
    from rejoinder.corpus.extract import dropped_most
    from rejoinder.corpus.extract import extract as run
    from rejoinder.io.files.addresses import any_path
    from rejoinder.links.linker import Linker

    with options.as_files(dumps) as files, Bar("pairs") as progress:
        manifest = run(
            files,
            out,
            rules=rules,
            columns=columns,
            separator={"\\t": "\t", "tab": "\t"}.get(separator or "", separator),
            max_line=max_line,
            subreddits=subreddits.split(",") if subreddits else (),
            since=since,
            until=until,
            limit=limit,
            max_reply_count=max_reply_count,
            split=_shares(split),
            strict=strict,
            format=format_,
            pair=pair,
            min_confidence=min_confidence,
            linker=Linker(links).stream,
            within=within,
            context=context,
            language=language.split(",") if language else (),
            dedupe=dedupe,
            include_private=include_private,
            mask=mask,
            min_authors=min_authors,
            engine=engine,
            master=master,
            memory=memory,
            threads=threads,
            carry=carry,
            overwrite=overwrite,
            progress=lambda stage, done, total: progress.show(
                stage, done, total, "bytes" if stage == "reading" else None
            ),
        )
    if output.asked_for("json"):
        with (any_path(out) / "manifest.json").open("rb") as file:
            typer.echo(file.read().decode(), nl=False)
    else:
        _show(manifest, str(any_path(out)))
    if columns is None and (read := manifest.options.get("columns", {})).keys() == {*PAIR_FIELDS}:
        output.note(
            f"messages are the column {read['message']!r}, and replies {read['reply']!r}; "
            "--columns names others"
        )
    if most := output.as_options(dropped_most(manifest.counts)):
        output.note(most)


@options.prints("json", "tsv")
def fit_links(
    sources: Annotated[list[Path], typer.Argument()],
    out: Path,
    columns: options.ColumnsOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Fit a linker, which finds who answers whom, on your own threads; it is kept if it is better.

    Args:
        sources: Exports with threads or replies, which say what messages answer; or tables.
        out: File to write the linker to.

    Examples:
        rejoinder fit-links slack-export.zip --out my.links
        rejoinder explore chat.txt --links my.links
        rejoinder extract chat.txt --links my.links --out pairs/
    """
    require("train", "torch")
    from rejoinder.conversations.own_links import fit_links as fit

    with Bar("") as bar:
        fitted = fit(
            sources, out, columns=columns, seed=seed, stage=lambda doing: bar.show(doing, 0, None)
        )
    facts = asdict(fitted)
    if not output.printed_json({"out": str(out) if fitted.is_better else None, **facts}):
        rows = [(name, one.right, one.precision, one.recall) for name, one in fitted.found.items()]
        output.print_rows(
            (f"{fitted.found['own'].messages:,} hidden answers", "right", "sure links right",
             "found"), rows,
        )  # fmt: skip
    if not fitted.is_better:
        output.status_line("not kept: the package's linker is right as often")
        raise typer.Exit(1)
    output.status_line(f"wrote {out} ({fitted.messages:,} messages)")


def _shares(text: str) -> tuple[float, float, float]:
    try:
        train, dev, test = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--split {text!r}: write three shares, such as 95,2.5,2.5.") from None
    return train, dev, test


def _show(manifest: "Manifest", out: str) -> None:
    """Prints the counts of an extraction as a table or as TSV."""
    rows = _rows(manifest)
    if output.form_of_output() == "table":
        output.print_table(f"rules: {manifest.rules}", ("", "count", ""), rows)
    else:
        output.print_rows(
            ("what", "count", "note"), [(name.strip(), *rest) for name, *rest in rows]
        )
    for line in manifest.malformed[:3]:
        output.status_line(f"  {line.file} line {line.line}: {line.problem}")
    output.status_line(f"wrote {out}")


def _rows(manifest: "Manifest") -> list[tuple[str, int, str]]:
    """Returns a row for each count: its name, the count, and an explanation."""
    counts, carry = manifest.counts, manifest.carry
    drops = {rule.name: rule.drops for rule in profile(manifest.rules)}
    return [
        *(row for export in manifest.exports for row in _export_rows(export)),
        ("lines read", counts.lines, ""),
        ("malformed lines", counts.malformed, "skipped"),
        ("comments", counts.comments, ""),
        ("  repeated", counts.duplicates, "same id, same content"),
        ("  conflicting", counts.conflicts, "same id, other content: the smallest text is kept"),
        *((f"  {name}", count, drops.get(name, "")) for name, count in counts.dropped.items()),
        ("kept", counts.kept, ""),
        ("  no parent", counts.without_parent, "answer a post, or nothing"),
        ("  parent not found", counts.parent_not_found, _MISSING[carry is not None]),
        ("  parent dropped", counts.parent_dropped, "by a rule"),
        ("  left out", counts.capped, "by --limit or --max-reply-count"),
        ("pairs", counts.pairs, ", ".join(f"{k} {v:,}" for k, v in manifest.splits.items())),
        *(_carried_rows(carry) if carry else ()),
        ("different messages", counts.unique_inputs, ""),
        ("different replies", counts.unique_responses, ""),
    ]


def _export_rows(export: "ExportCounts") -> list[tuple[str, int, str]]:
    from rejoinder.corpus.export_options import REASONS

    return [
        ("messages", export.messages, FORMATS[export.format].title),
        *(
            (f"  {why}", count, output.as_options(REASONS[why]))
            for why, count in export.dropped.items()
            if count
        ),
        ("  linked", export.linked, "the export says what they answer"),
        ("  adjacent", export.adjacent, "answer the message before; see --pair, --within"),
        ("  modelled", export.modelled, "answer what the model finds; see --min-confidence"),
    ]


_MISSING = ("not in these dumps", "not in these dumps or earlier ones")


def _carried_rows(carry: "Carried") -> list[tuple[str, int, str]]:
    return [
        ("  carried messages", carry.messages, f"of {carry.comments:,} comments of earlier dumps"),
        ("  carried replies", carry.replies, "whose message came later"),
        ("  overruled", carry.overruled, "one extraction might have kept another with this id"),
    ]
