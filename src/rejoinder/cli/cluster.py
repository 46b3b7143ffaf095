"""`rejoinder cluster`: what texts are about."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.cli.sources import SourceArgument, open_source, working_on

if TYPE_CHECKING:
    from rejoinder.conversations.topics import Topic, Topics

EXAMPLES = options.epilog(
    "rejoinder cluster slack_export.zip",
    "rejoinder cluster index/ --topics 50 --json",
    "rejoinder cluster messages.csv --columns text=body --out topics/",
    "rejoinder cluster newer.csv --columns text=body --out topics/ --add",
)
_COLUMNS = ("topic", "name", "messages", "over time", "typical message")
_BARS = "▁▂▃▄▅▆▇█"
_MOST_MONTHS = 24
_LEAST_SHARE = 0.02
"""Messages of a month that is shown, as a share of those of the busiest month."""
_SHOWN = 90
"""Characters of a typical message in a table."""


@options.prints(
    "json",
    "tsv",
    needs={"--out FOLDER": ("--add", "--overwrite")},
    excludes=[("--add", one) for one in ("--topics", "--least", "--seed", "--overwrite")],
)
def cluster(
    source: SourceArgument,
    columns: options.ColumnsOption = None,
    where: options.WhereOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    topics: Annotated[
        int | None,
        typer.Option(min=1, help="About how many topics to find. Default: as the texts have."),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Least number of different texts of a topic. Default: 10, or fewer for fewer than "
            "500 texts.",
        ),
    ] = None,
    seed: Annotated[int | None, "Seed of all random draws. Default: 0."] = None,
    threads: options.ThreadsOption = None,
    out: Annotated[Path | None, "Folder to write: topics, and the topic of each message."] = None,
    add: Annotated[
        bool,
        "Keep the topics in OUT, and add the texts that it lacks to the nearest ones.",
    ] = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Find the topics of texts: names, sizes, typical messages, and change over time."""
    from rejoinder.conversations.topics import Topics
    from rejoinder.conversations.topics import cluster as find
    from rejoinder.io.files.claims import refuse_occupied

    before = Topics.load(out) if add and out is not None else None
    if out is not None and not add:
        refuse_occupied(out, overwrite=overwrite)
    opened = open_source(
        source, model=model, model_sha256=model_sha256, columns=columns, where=where,
        threads=threads,
    )  # fmt: skip
    with working_on(opened) as progress:
        found = find(
            opened, topics=topics, least=least, seed=seed, keep=before, threads=threads,
            progress=progress,
        )  # fmt: skip
    if out is not None:
        found.save(out, overwrite=overwrite or add, inputs=[] if add else [source])
    _print(found)
    if not found.topics:
        output.note(
            "no topic was found: too few messages are alike. A lower --least finds smaller topics"
        )
    if out is not None:
        output.status_line(f"wrote {out}: {len(found)} topics of {len(found.ids):,} messages")


def _print(found: "Topics") -> None:
    """Prints topics below their wider ones, the largest of these first."""
    none = int((found.labels < 0).sum())
    if output.asked_for("json"):
        output.print_json({
            "messages": len(found.ids), "none": none, "months": found.months,
            "topics": found.topic_dicts()[: len(found)],
            "wider": found.topic_dicts()[len(found) :],
        })  # fmt: skip
        return
    if output.form_of_output() == "tsv":
        output.print_rows(_COLUMNS, [_row(found, topic) for topic in found.topics])
        return
    dated = bool(found.months)
    columns = [name for name in _COLUMNS if dated or name != "over time"]
    wider = sorted(found.wider, key=lambda topic: -topic.size)
    titles: dict[int | None, str] = {one.id: f"{one.name} ({one.size:,})" for one in wider}
    titles[None] = "Other topics" if wider else ""
    for parent, title in titles.items():
        inside = [one for one in found.topics if one.parent == parent]
        if inside:
            rows = [_row(found, topic) for topic in inside]
            output.print_table(
                title, columns, [[*row[:3], *row[3 if dated else 4 :]] for row in rows]
            )
            typer.echo()
    share = none / max(len(found.ids), 1)
    total = f"{len(found.ids):,} messages, {len(found)} topics"
    if found.months:
        total += f", {min(found.months)} to {max(found.months)}"
    typer.echo(f"{total}; messages without a topic: {none:,} ({share:.0%})")


def _row(found: "Topics", topic: "Topic") -> tuple[Any, ...]:
    shown = output.excerpt(topic.typical[0], _SHOWN) if topic.typical else ""
    least = max(found.months.values(), default=0) * _LEAST_SHARE
    shares = found.shares(topic)
    line = [shares[month] for month, count in found.months.items() if count >= least]
    return topic.id, topic.name, topic.size, _line(line), shown


def _line(shares: Sequence[float]) -> str:
    """Returns shares as a line of bars, of the last months.

    >>> _line([0, 0.1, 0.2])
    '▁▅█'
    """
    shares = shares[-_MOST_MONTHS:]
    highest = max(shares, default=0) or 1
    return "".join(_BARS[round(share / highest * (len(_BARS) - 1))] for share in shares)
