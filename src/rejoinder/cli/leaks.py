"""`rejoinder leaks`: counts what training data shares with evaluation sets."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.messages import split_lists
from rejoinder.cli.options import epilog, prints
from rejoinder.cli.output import form_of_output, print_json, print_rows
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.datasets.leaks import Leak

EXAMPLES = epilog(
    "rejoinder leaks --train pairs/ --eval stsb-test,snli",
    "rejoinder leaks --train multinli.jsonl.zst,captions.jsonl --show 5",
    "rejoinder leaks --train pairs/ --eval my_test.tsv --json",
)
_COLUMNS = ("train", "train_rows", "evaluation", "sentences", "of_sentences", "rows", "pairs",
            "of_pairs")  # fmt: skip
"""The keys of JSON without the examples."""


@prints("json")
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
            "trec-test, sts2017-languages (tracks 1 to 4 and 6), flores200. A name without its "
            "split, such as stsb, means all its splits. Or files. Default: all sets.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Number of sentences to show of each set.")] = 0,
) -> None:
    """Count the sentences and pairs of evaluation sets that occur in training data.

    Texts are compared by their letters and digits, in lower case. A pipe gets TSV, one row per set.
    The sentences of --show are printed on a terminal and in JSON.
    """
    from rejoinder.cli.progress import Bar
    from rejoinder.datasets.leaks import evaluation_sets, find_leaks

    sources = [Path(name) for name in split_lists(train)]
    if not sources:
        raise InputError("--train names no file or folder.")
    sets = evaluation_sets(split_lists(evaluation or ()))
    with Bar("rows") as progress:
        results = find_leaks(sources, sets, examples=show, progress=progress.show)
    form = form_of_output()
    if form == "json":
        print_json([asdict(leak) for leak in results])
    elif form == "tsv":
        print_rows(_COLUMNS, [[getattr(leak, name) for name in _COLUMNS] for leak in results])
    else:
        for source in dict.fromkeys(leak.train for leak in results):
            _show([leak for leak in results if leak.train == source])


def _show(leaks: "Sequence[Leak]") -> None:
    """Prints a table of the sets that leak into a source, examples, and the sets that do not."""
    columns = _COLUMNS[2:]
    rows = [[getattr(leak, name) for name in columns] for leak in leaks if leak.sentences]
    source = leaks[0].train
    if rows:
        print_rows(columns, rows, f"{source}: {leaks[0].train_rows:,} rows")
    for leak in leaks:
        for text in leak.examples:
            typer.echo(f"  {leak.evaluation}: {text}")
    if clean := ", ".join(leak.evaluation for leak in leaks if not leak.sentences):
        typer.echo(f"  {source} has no sentence of {clean}")
