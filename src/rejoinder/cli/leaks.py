"""`rejoinder leaks`: counts what training data shares with evaluation sets."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.lines import split_lists
from rejoinder.cli.options import JsonOption, QuietOption, set_quiet
from rejoinder.cli.output import form_of, print_rows, print_table
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.datasets.leaks.search import Leak

EXAMPLES = """Examples:

rejoinder leaks --train pairs/ --eval stsb-test,snli

rejoinder leaks --train multinli.jsonl.zst,captions.jsonl --show 5

rejoinder leaks --train pairs/ --eval my_test.tsv --json
"""
_COLUMNS = ("training data", "rows", "evaluation set", "sentences", "of", "share", "in rows",
            "pairs", "of")  # fmt: skip
_FIELDS = ("train", "train_rows", "evaluation", "sentences", "of_sentences", "rows", "pairs",
           "of_pairs")  # fmt: skip
"""Columns of TSV: the keys of JSON without the examples."""


def leaks(
    train: Annotated[
        list[str],
        typer.Option(
            metavar="PATH[,PATH]...",
            help="Folders of `rejoinder extract` (the train split), JSON lines of inference pairs, "
            "paraphrases or groups, or text: a sentence per line, or several between tabs.",
        ),
    ],
    evaluation: Annotated[
        list[str] | None,
        typer.Option(
            "--eval",
            metavar="SET[,SET]...",
            show_default=False,
            help="Sets: stsb-train, stsb-dev, stsb-test, sts12 to sts15, sts2017, snli-dev, "
            "snli-test, mrpc-test, cqa2016-dev, cqa2016-test, mr, cr, subj, sst2-dev, sst2-test, "
            "trec-test. A name without its split, such as stsb, means all its splits. Or files. "
            "Default: all sets.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Number of sentences to show of each set.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count the sentences and pairs of evaluation sets that occur in training data, normalised.

    A pipe gets TSV, a row per set. The sentences of --show are printed on a terminal and in JSON.
    """
    from rejoinder.cli.progress import StageProgress
    from rejoinder.datasets.leaks.search import evaluation_sets, find_leaks

    set_quiet(quiet)
    sources = [Path(name) for name in split_lists(train)]
    if not sources:
        raise InputError("--train names no file and no folder.")
    sets = evaluation_sets(split_lists(evaluation or ()))
    with StageProgress("rows") as progress:
        results = find_leaks(sources, sets, examples=show, progress=progress.stage_update)
    form = form_of(as_json=as_json)
    if form == "json":
        typer.echo(json.dumps([asdict(leak) for leak in results], ensure_ascii=False))
    elif form == "tsv":
        print_rows(_FIELDS, [[getattr(leak, name) for name in _FIELDS] for leak in results], "tsv")
    else:
        _show(results)


def _show(leaks: "Sequence[Leak]") -> None:
    """Prints a table of the sets that leak, a line on those that do not, and the examples."""
    leaking = [leak for leak in leaks if leak.sentences]
    names = _short_names([leak.train for leak in leaks])
    rows, previous = [], ""
    for leak in leaking:
        source = ("", "") if leak.train == previous else (names[leak.train], leak.train_rows)
        previous = leak.train
        occurring = (leak.sentences, leak.of_sentences, f"{leak.share:.1%}")
        rows.append((*source, leak.evaluation, *occurring, leak.rows, leak.pairs, leak.of_pairs))
    if rows:
        print_table("", _COLUMNS, rows)
    clean: dict[str, list[str]] = {}
    for leak in leaks:
        if not leak.sentences:
            clean.setdefault(leak.train, []).append(leak.evaluation)
    for train, sets in clean.items():
        typer.echo(f"  {names[train]}: no sentence of {', '.join(sets)}")
    for leak in leaking:
        for text in leak.examples:
            typer.echo(f"  {names[leak.train]}, {leak.evaluation}: {text}")


def _short_names(sources: "Sequence[str]") -> dict[str, str]:
    """Returns the file name of each source, or the whole paths if two names are the same."""
    short = {source: Path(source).name or source for source in dict.fromkeys(sources)}
    ambiguous = len(set(short.values())) < len(short)
    return {source: source for source in short} if ambiguous else short
