"""`rejoinder leaks`: what of evaluation sets occurs in training data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.leaks.search import Leak

_EPILOG = """Examples:

rejoinder leaks --train pairs/ --eval stsb-test snli

rejoinder leaks --train nli/*.jsonl.zst captions.jsonl --show 5

rejoinder leaks --train pairs/ --eval my_test.tsv --json
"""
_SEVERAL = ("--train", "--eval")
_COLUMNS = ("training data", "rows", "evaluation set", "sentences", "of", "share", "in rows",
            "pairs", "of")  # fmt: skip
_FIELDS = ("train", "train_rows", "evaluation", "sentences", "of_sentences", "rows", "pairs",
           "of_pairs")  # fmt: skip
"""Of TSV: those of JSON but for the examples."""


class _TakesSeveral(TyperCommand):
    """`--train A B` is `--train A --train B`, so that a shell's globs can be given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spread the values, then parse."""
        return super().parse_args(ctx, spread(args))


def spread(words: "Sequence[str]") -> list[str]:
    """Each value after an option that takes several behind a name of its own.

    >>> spread(["--train", "a", "b", "--json"])
    ['--train', 'a', '--train', 'b', '--json']
    """
    found: list[str] = []
    option, given = None, 0
    for word in words:
        if word.startswith("-"):
            option, given = (word if word in _SEVERAL else None), 0
        elif option:
            given += 1
            if given > 1:
                found.append(option)
        found.append(word)
    return found


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("leaks", epilog=_EPILOG, cls=_TakesSeveral)(leaks)


def leaks(
    train: Annotated[
        list[Path],
        typer.Option(
            metavar="PAIRS...",
            help="Folders of `rejoinder extract` (the train split), JSON lines of inference pairs, "
            "paraphrases or groups, or text: a sentence a line, or several between tabs.",
        ),
    ],
    evaluation: Annotated[
        list[str] | None,
        typer.Option(
            "--eval",
            metavar="TASK...",
            help="Sets: stsb-train, stsb-dev, stsb-test, sts12 to sts15, sts2017, snli-dev, "
            "snli-test; stsb and snli are theirs together; or files. Default: all sets.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Show so many sentences of each.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Count the sentences and pairs of evaluation sets that occur in training data, normalised.

    A pipe gets TSV, a row for every set; sentences of --show are shown on a terminal and in JSON.
    """
    import json
    from dataclasses import asdict

    from rejoinder.cli.output import form_of, print_rows
    from rejoinder.cli.progress import StageProgress
    from rejoinder.leaks.search import evaluation_sets, find_leaks

    sets = evaluation_sets(evaluation or [])
    with StageProgress("rows") as progress:
        found = find_leaks(train, sets, examples=show, progress=progress.stage_update)
    form = form_of(as_json=json_output, as_tsv=False)
    if form == "json":
        typer.echo(json.dumps([asdict(leak) for leak in found], ensure_ascii=False))
    elif form == "tsv":
        print_rows(_FIELDS, [[getattr(leak, name) for name in _FIELDS] for leak in found], "tsv")
    else:
        _show(found)


def _show(found: "Sequence[Leak]") -> None:
    """A table of what occurs, a line for what does not, and the examples."""
    from rejoinder.cli.output import print_table

    leaking = [leak for leak in found if leak.sentences]
    names = _short_names([leak.train for leak in found])
    rows, before = [], ""
    for leak in leaking:
        source = ("", "") if leak.train == before else (names[leak.train], leak.train_rows)
        before = leak.train
        occurring = (leak.sentences, leak.of_sentences, f"{leak.share:.1%}")
        rows.append((*source, leak.evaluation, *occurring, leak.rows, leak.pairs, leak.of_pairs))
    if rows:
        print_table("", _COLUMNS, rows)
    clean: dict[str, list[str]] = {}
    for leak in found:
        if not leak.sentences:
            clean.setdefault(leak.train, []).append(leak.evaluation)
    for train, sets in clean.items():
        typer.echo(f"  {names[train]}: no sentence of {', '.join(sets)}")
    for leak in leaking:
        for text in leak.examples:
            typer.echo(f"  {names[leak.train]}, {leak.evaluation}: {text}")


def _short_names(sources: "Sequence[str]") -> dict[str, str]:
    """Each source by the last part of its path, where no other has the same."""
    short = {source: Path(source).name or source for source in dict.fromkeys(sources)}
    again = len(set(short.values())) < len(short)
    return {source: source for source in short} if again else short
