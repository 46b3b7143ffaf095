"""`rejoinder cluster`: what texts are about.

`rejoinder dedupe`: finds messages that mean the same, and writes those to keep.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar, encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.conversations.collection import Collection
    from rejoinder.conversations.duplicates import Duplicates, Group
    from rejoinder.conversations.topics import Topic, Topics
    from rejoinder.corpus.options import ExtractProgress

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File of texts, plain or compressed; - is standard input. Or an export of "
        "conversations, a folder of pairs (both sides are read), or an index.",
    ),
]
_SHORT = 20_000
"""Texts that are compared within seconds, without a bar."""

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
    topics: Annotated[int | None, typer.Option(min=1)] = None,
    least: Annotated[int | None, typer.Option(min=1)] = None,
    seed: int | None = None,
    threads: options.ThreadsOption = None,
    out: Path | None = None,
    add: bool = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Find the topics of texts: names, sizes, typical messages, and change over time.

    Args:
        topics: About how many topics to find. Default: chosen from the texts.
        least: Minimum number of different texts in a topic. Default: 10, or fewer for fewer than
            500 texts.
        seed: Seed of all random draws. Default: 0.
        out: Folder to write: topics, and the topic of each message.
        add: Keep the topics in OUT, and add new texts to the nearest topics.

    Examples:
        rejoinder cluster slack_export.zip
        rejoinder cluster index/ --topics 50 --json
        rejoinder cluster messages.csv --columns text=body --out topics/
        rejoinder cluster newer.csv --columns text=body --out topics/ --add
    """
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
        output.note("no topic was found; a lower --least finds smaller ones")
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


_TOP, _MEMBERS = 20, 3
_CHARACTERS = 160


@options.prints(
    "json",
    "tsv",
    needs={
        "--out FOLDER": ("--overwrite",),
        "--scorer or --scorer-from FOLDER": ("--least-score",),
    },
)
def dedupe(
    source: SourceArgument,
    threshold: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    examples: Path | None = None,
    false_positives: float | None = None,
    scorer: bool = False,
    scorer_from: options.ScorerFromOption = None,
    least_score: Annotated[float | None, typer.Option(min=0, max=5)] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    columns: options.ColumnsOption = None,
    where: options.WhereOption = None,
    questions: bool = False,
    min_words: Annotated[int, typer.Option(min=0)] = 0,
    out: Path | None = None,
    overwrite: options.OverwriteOption = False,
    top: Annotated[int | None, typer.Option(min=1)] = None,
    threads: options.ThreadsOption = None,
) -> None:
    """Find texts that mean the same, in groups with one text to keep, largest group first.

    SOURCE may also be the OUT of an earlier run, to apply another --threshold to it.

    Args:
        threshold: Cosine from which two texts mean the same.
        examples: JSON lines with sentence1, sentence2 and label (1 if they mean the same, or 0), to
            choose the threshold with the highest F1.
        false_positives: Share of texts without a duplicate that may be dropped: the threshold is
            estimated on the texts themselves. Default: 0.001, with a threshold of at most 0.9.
        scorer: Also score pairs word by word; they must reach --least-score.
        least_score: Score from which two texts mean the same to the scorer. Default: 4.
        questions: Compare only texts with a question mark.
        min_words: Compare only texts with at least this many words.
        out: Folder to write: kept.jsonl, dropped.jsonl, and duplicates.safetensors, for trying
            another threshold.
        top: Groups to print. Default: 20, and all as JSON or TSV.

    Examples:
        rejoinder dedupe questions.txt
        rejoinder dedupe slack-export.zip --questions --min-words 5
        rejoinder dedupe questions.txt --examples pairs.jsonl
        rejoinder dedupe questions.txt --scorer --threshold 0.8
        rejoinder dedupe index/ --false-positives 0.01 --json
        rejoinder dedupe tickets.csv --columns text=subject --out unique/
        rejoinder dedupe unique/ --threshold 0.95
    """
    by_scorer = scorer or scorer_from is not None
    from rejoinder.conversations.duplicates import FILE
    from rejoinder.io.files.claims import refuse_occupied

    if out is not None:
        refuse_occupied(out, overwrite=overwrite)
    if (Path(source) / FILE).is_file():
        found = _changed(Path(source), threshold)
    else:
        from rejoinder.conversations.dedupe import dedupe as find
        from rejoinder.scoring.scorer import Scorer

        opened = open_source(
            source, model=model, model_sha256=model_sha256, columns=columns, where=where,
            questions=questions, min_words=min_words, threads=threads,
        )  # fmt: skip
        judge = Scorer(scorer_from, opened.encoder) if by_scorer else None
        with working_on(opened) as progress:
            found = find(
                opened, threshold=threshold, examples=examples, false_positives=false_positives,
                scorer=judge, least_score=least_score, threads=threads,
                progress=progress,
            )  # fmt: skip
    if out is not None:
        found.save(out, overwrite=overwrite, inputs=[source, *([examples] if examples else [])])
    _print_duplicates(found, top)
    if out is not None:
        output.status_line(f"wrote {out}: {len(found) - len(found.filtered):,} kept")


def _changed(folder: Path, threshold: float | None) -> "Duplicates":
    """Returns what `--out` wrote, with another threshold."""
    from rejoinder.conversations.duplicates import Duplicates

    wrong = options.given_besides(
        *("source", "threshold", "out", "overwrite", "top", "json", "tsv", "quiet")
    )
    if wrong:
        raise InputError(f"{', '.join(wrong)}: duplicates found before take --threshold alone.")
    found = Duplicates.load(folder)
    return found if threshold is None else found.rethreshold(threshold)


def _print_duplicates(found: "Duplicates", top: int | None) -> None:
    form = output.form_of_output()
    groups = found.groups[: top if top or form != "table" else _TOP]
    if form == "json":
        output.print_json({**found.summary(), "groups": [_tree(group) for group in groups]})
        return
    if form == "tsv":
        rows = (
            (number, group.size, one.score, one.id, one.text)
            for number, group in enumerate(groups, 1)
            for one in (group.kept, *group.dropped)
        )
        output.print_rows(("group", "size", "cosine", "id", "text"), rows)
    else:
        _print_groups(groups)
        if len(found.groups) > len(groups):
            typer.echo(f"and {len(found.groups) - len(groups):,} groups more (--top, --json)")
    _summarise(found)


def _tree(group: "Group") -> dict[str, Any]:
    return {
        "size": group.size, "id": group.id, "text": group.text,
        "dropped": [
            {"id": one.id, "text": one.text, "cosine": one.score} for one in group.dropped
        ],
    }  # fmt: skip


def _print_groups(groups: "Iterable[Group]") -> None:
    """Prints the kept text of each group, and the first different ones that are dropped for it."""
    console = Console(highlight=False, markup=False, emoji=False)
    for group in groups:
        console.print(
            Text(f"{group.size:>6,}  ") + Text(output.excerpt(group.text, _CHARACTERS), "bold")
        )
        shown = {output.excerpt(group.text, _CHARACTERS): 1.0}
        for one in group.dropped:
            shown.setdefault(output.excerpt(one.text, _CHARACTERS), one.score)
        for text, score in islice(shown.items(), 1, 1 + _MEMBERS):
            console.print(Text(f"        {score:.2f}  {text}", "dim"))
        if len(shown) > 1 + _MEMBERS:
            console.print(Text(f"              and {len(shown) - 1 - _MEMBERS:,} others", "dim"))


def _summarise(found: "Duplicates") -> None:
    """Prints what was found and how, on standard error."""
    dropped, estimate = len(found.filtered), found.estimate
    output.status_line(
        f"{len(found):,} texts: {len(found) - dropped:,} kept, {dropped:,} dropped "
        f"({found.duplicate_ratio:.1%}) in {len(found.groups):,} groups, from a cosine of "
        f"{found.threshold:.3g} ({estimate.basis})"
        f"{'' if found.least_score is None else f' and a score of {found.least_score:g}'}"
    )
    if estimate.f1 is not None:
        scores = f"precision {estimate.precision:.3f}, recall {estimate.recall:.3f}"
        output.status_line(f"on the examples: {scores}, F1 {estimate.f1:.3f}")
    if estimate.basis == "default":
        output.note(
            "too few texts are unlike all others to estimate the rate of false positives; check "
            "some groups, or label pairs for --examples"
        )
    if found.search_recall < 1:
        output.status_line(f"{found.search_recall:.1%} of such pairs were found, by a sample")


def open_source(
    source: str,
    *,
    model: str | None,
    model_sha256: str | None,
    columns: str | None,
    where: list[str] | None,
    **chosen: Any,
) -> "Collection":
    """Returns the texts of a SOURCE with their embeddings, as `chosen` for `open_collection`.

    Raises:
        RejoinderError: an option is not valid, or the source can't be read.
    """
    from rejoinder.conversations.collection import open_collection

    is_input = options.is_stream(source)
    with encoding_bar() as encoding:
        return open_collection(
            options.stream_entries(source, columns) if is_input else Path(source),
            options.given_model(model, model_sha256),
            columns=None if is_input else columns,
            where=options.where_conditions(where),
            progress=encoding,
            **chosen,
        )


@contextmanager
def working_on(opened: "Collection") -> Iterator["ExtractProgress"]:
    """Yields a function that shows stages of the work on texts, if those are many.

    Then it notes which messages of an export were left out.
    """
    with Bar("texts") as bar:

        def show(stage: str, done: int, total: int | None) -> None:
            if len(opened) > _SHORT or (total or 0) > _SHORT:
                bar.show(stage, done, total, "pairs" if stage == "scoring" else "texts")

        yield show
    output.note_left_out(opened.left_out)
