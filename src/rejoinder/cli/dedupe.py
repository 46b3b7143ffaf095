"""`rejoinder dedupe`: finds messages that mean the same, and writes those to keep."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.cli.sources import SourceArgument, open_source, working_on
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.conversations.duplicates import Duplicates, Group

EXAMPLES = options.epilog(
    "rejoinder dedupe questions.txt",
    "rejoinder dedupe slack-export.zip --questions --min-words 5",
    "rejoinder dedupe questions.txt --examples pairs.jsonl",
    "rejoinder dedupe questions.txt --scorer --threshold 0.8",
    "rejoinder dedupe index/ --false-positives 0.01 --json",
    "rejoinder dedupe tickets.csv --columns text=subject --out unique/",
    "rejoinder dedupe unique/ --threshold 0.95",
)
_TOP, _MEMBERS = 20, 3
_CHARACTERS = 160


@options.prints(
    "json",
    "tsv",
    needs={
        "--out FOLDER": ("--overwrite", "--floor"),
        "--scorer or --scorer-from FOLDER": ("--least-score",),
    },
)
def dedupe(
    source: SourceArgument,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Cosine from which two texts mean the same."),
    ] = None,
    examples: Annotated[
        Path | None,
        "JSON lines with sentence1, sentence2 and label (1: they mean the same, or 0): the "
        "threshold with the highest F1 on them is taken.",
    ] = None,
    false_positives: Annotated[
        float | None,
        "Share of texts without a duplicate that may be dropped: the threshold is estimated on the "
        "texts themselves. Default: 0.001, with a threshold of at most 0.9.",
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(
            min=0, max=1,
            help="Least threshold to which OUT can be changed. Default: 0.1 below the threshold.",
        ),
    ] = None,
    scorer: Annotated[
        bool, "Also score pairs by the words one by one: they must reach --least-score."
    ] = False,
    scorer_from: options.ScorerFromOption = None,
    least_score: Annotated[
        float | None,
        typer.Option(
            min=0, max=5, help="Score from which two texts mean the same to the scorer. Default: 4."
        ),
    ] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    columns: options.ColumnsOption = None,
    where: options.WhereOption = None,
    questions: Annotated[bool, "Compare only texts with a question mark."] = False,
    min_words: Annotated[
        int, typer.Option(min=0, help="Compare only texts of at least so many words.")
    ] = 0,
    out: Annotated[
        Path | None,
        "Folder to write: kept.jsonl, dropped.jsonl, and duplicates.safetensors, which another "
        "threshold is applied to.",
    ] = None,
    overwrite: options.OverwriteOption = False,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Groups to print. Default: 20, and all as JSON or TSV."),
    ] = None,
    threads: options.ThreadsOption = None,
) -> None:  # fmt: skip
    """Find texts that mean the same, in groups around one to keep, the largest first.

    SOURCE may also be the OUT of another run: another --threshold is applied to it.
    """
    by_scorer = scorer or scorer_from is not None
    from rejoinder.conversations.duplicates import FILE
    from rejoinder.io.files.claims import refuse_occupied

    if out is not None:
        refuse_occupied(out, overwrite=overwrite)
    if (Path(source) / FILE).is_file():
        given = {
            "--examples": examples, "--false-positives": false_positives, "--floor": floor,
            "--model": model, "--model-sha256": model_sha256, "--columns": columns,
            "--where": where, "--questions": questions, "--min-words": min_words,
            "--threads": threads, "--scorer": scorer, "--scorer-from": scorer_from,
        }  # fmt: skip
        found = _changed(Path(source), threshold, [name for name, value in given.items() if value])
    else:
        from rejoinder.conversations.dedupe import dedupe as find
        from rejoinder.scoring.opened import Scorer

        opened = open_source(
            source, model=model, model_sha256=model_sha256, columns=columns, where=where,
            questions=questions, min_words=min_words, threads=threads,
        )  # fmt: skip
        judge = Scorer(scorer_from, opened.encoder) if by_scorer else None
        with working_on(opened) as progress:
            found = find(
                opened, threshold=threshold, examples=examples, false_positives=false_positives,
                floor=floor, scorer=judge, least_score=least_score, threads=threads,
                progress=progress,
            )  # fmt: skip
    if out is not None:
        found.save(out, overwrite=overwrite, inputs=[source, *([examples] if examples else [])])
    _print(found, top)
    if out is not None:
        output.status_line(f"wrote {out}: {len(found) - len(found.filtered):,} kept")


def _changed(folder: Path, threshold: float | None, wrong: list[str]) -> "Duplicates":
    """Returns what `--out` wrote, with another threshold."""
    from rejoinder.conversations.duplicates import Duplicates

    if wrong:
        raise InputError(
            f"{', '.join(wrong)}: {folder} has the duplicates of texts already; they take "
            "--threshold alone. Name the texts."
        )
    found = Duplicates.load(folder)
    return found if threshold is None else found.rethreshold(threshold)


def _print(found: "Duplicates", top: int | None) -> None:
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
    from rich.console import Console
    from rich.text import Text

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


_BASES = {
    "given": "as given",
    "examples": "by the examples",
    "false positives": "by the rate of false positives",
    "default": "the default",
}


def _summarise(found: "Duplicates") -> None:
    """Prints what was found and how, on standard error."""
    dropped, estimate = len(found.filtered), found.estimate
    output.status_line(
        f"{len(found):,} texts: {len(found) - dropped:,} kept, {dropped:,} dropped "
        f"({found.duplicate_ratio:.1%}) in {len(found.groups):,} groups, from a cosine of "
        f"{found.threshold:.3g} ({_BASES[estimate.basis]})"
        f"{'' if found.least_score is None else f' and a score of {found.least_score:g}'}"
    )
    if estimate.f1 is not None:
        output.status_line(
            f"on the examples: precision {estimate.precision:.3f}, recall {estimate.recall:.3f}, "
            f"F1 {estimate.f1:.3f}"
        )
    if estimate.basis == "default":
        output.note(
            "there are few texts, or most have a near one, so that no rate of false positives can "
            "be estimated. Look at some groups, or label pairs for --examples"
        )
    if found.search_recall < 1:
        output.status_line(f"{found.search_recall:.1%} of such pairs were found, by a sample")
