"""`rejoinder extract`: dumps to pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.corpus.engines import ENGINES

if TYPE_CHECKING:
    from rejoinder.corpus.extract import ExtractOptions
    from rejoinder.corpus.manifest import Manifest

_EPILOG = """Examples:

rejoinder extract RC_2015-01.zst RC_2015-02.zst --out pairs/

rejoinder extract dumps/ --out pairs/ --subreddits AskReddit,college

rejoinder extract tickets.csv --out pairs/ --rules none
--columns id=msg_id,parent=reply_to,text=message,author=user,thread=ticket

rejoinder extract faq.tsv --out pairs/ --rules none --columns message=question,reply=answer
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("extract", epilog=_EPILOG)(extract)


def extract(
    dumps: Annotated[
        list[str],
        typer.Argument(help="Dumps: JSON lines, CSV, TSV, Parquet; files, folders of them, globs."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write: Parquet shards and manifest.json.")],
    rules: Annotated[str, typer.Option(help="paper, polyai or none.")] = "paper",
    columns: Annotated[
        str | None,
        typer.Option(
            help="Your columns: id=…,parent=…,text=…[,author=…,thread=…,source=…,created=…], "
            "or message=…,reply=…; numbers: places, no header."
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="Between the columns of CSV and TSV files. Default: as their first line."
        ),
    ] = None,
    subreddits: Annotated[str | None, typer.Option(help="Only these, joined by commas.")] = None,
    since: Annotated[str | None, typer.Option(help="Only comments from this date on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only comments before this date.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many pairs.")] = None,
    max_reply_count: Annotated[
        int | None, typer.Option(min=1, help="At most so many pairs with one and the same reply.")
    ] = None,
    split: Annotated[str, typer.Option(help="Shares of train, dev and test.")] = "95,2.5,2.5",
    engine: Annotated[str, typer.Option(help=f"One of: {', '.join(ENGINES)}.")] = "duckdb",
    memory: Annotated[
        str,
        typer.Option(
            help="Memory of the engine, 150MB or more; readers and writer take about 0.8 GB on top."
        ),
    ] = "2GB",
    threads: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a malformed line.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest.")] = False,
    as_tsv: Annotated[
        bool, typer.Option("--tsv", help="Print tab-separated counts, as to a pipe.")
    ] = False,
) -> None:
    """Find the message/reply pairs in dumps of comments."""
    from rejoinder.cli.output import form_of
    from rejoinder.cli.progress import StageProgress
    from rejoinder.corpus.extract import ExtractOptions, parse_date
    from rejoinder.corpus.extract import extract as run
    from rejoinder.corpus.query import Filters
    from rejoinder.corpus.schema import Columns, parse_columns

    form = form_of(as_json=as_json, as_tsv=as_tsv)
    options = ExtractOptions(
        rules=rules,
        columns=parse_columns(columns) if columns else Columns(),
        filters=Filters(
            tuple(name.strip().lower() for name in subreddits.split(",")) if subreddits else (),
            parse_date(since) if since else None,
            parse_date(until) if until else None,
        ),
        limit=limit,
        max_replies=max_reply_count,
        split=_shares(split),
        strict=strict,
        engine=engine,
        memory=memory,
        threads=threads,
        separator={"\\t": "\t", "tab": "\t"}.get(separator or "", separator),
        overwrite=overwrite,
    )
    with StageProgress("pairs") as progress:
        manifest = run(
            dumps,
            out,
            options,
            lambda stage, done, total: progress.stage_update(
                stage, done, total, "bytes" if stage == "reading" else None
            ),
        )
    if form == "json":
        typer.echo((out / "manifest.json").read_text("utf-8"), nl=False)
    else:
        show(manifest, options, out, form)


def _shares(text: str) -> tuple[float, float, float]:
    from rejoinder.errors import InputError

    try:
        train, dev, test = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--split {text!r}: write three shares, as 95,2.5,2.5.") from None
    return train, dev, test


def show(manifest: "Manifest", options: "ExtractOptions", out: Path, form: str) -> None:
    """Print what became of the comments, as a `table` or as `tsv`."""
    from rejoinder.cli.output import print_rows, print_table

    rows = _rows(manifest, options)
    if form == "table":
        print_table(f"rules: {manifest.rules}", ("", "count", ""), rows)
    else:
        print_rows(("what", "count", "note"), [(name.strip(), *rest) for name, *rest in rows], form)
    for line in manifest.malformed[:3]:
        typer.echo(f"  {line.file} line {line.line}: {line.problem}", err=True)
    typer.echo(f"wrote {out}", err=True)


def _rows(manifest: "Manifest", options: "ExtractOptions") -> list[tuple[str, int, str]]:
    """What became of the comments: name, count, what the name means."""
    from rejoinder.corpus.rules import profile

    counts = manifest.counts
    drops = {rule.name: rule.drops for rule in profile(options.rules)}
    return [
        ("lines read", counts.lines, ""),
        ("malformed lines", counts.malformed, "skipped"),
        ("comments", counts.comments, ""),
        ("  repeated", counts.duplicates, "same id, same content"),
        ("  conflicting", counts.conflicts, "same id, other content: the smallest text is kept"),
        *((f"  {name}", count, drops.get(name, "")) for name, count in counts.dropped.items()),
        ("kept", counts.kept, ""),
        ("  no parent", counts.without_parent, "answer a post, or nothing"),
        ("  parent not found", counts.parent_not_found, "not in these dumps"),
        ("  parent dropped", counts.parent_dropped, "by a rule"),
        ("  left out", counts.capped, "by --limit or --max-reply-count"),
        ("pairs", counts.pairs, ", ".join(f"{k} {v:,}" for k, v in manifest.splits.items())),
        ("different messages", counts.unique_inputs, ""),
        ("different replies", counts.unique_responses, ""),
    ]
