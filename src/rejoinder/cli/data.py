"""`rejoinder data`: lists, downloads and lays out the data sets of tasks and recipes.

`rejoinder leaks`: counts what training data shares with evaluation sets.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.datasets.acquire.layout import Added, Failed, Presence
    from rejoinder.datasets.catalogue import DataSet
    from rejoinder.datasets.leaks import Leak

_EPILOG = options.epilog(
    "rejoinder data list",
    "rejoinder data list stsb --json",
    "rejoinder data add stsb Stsbenchmark.tar.gz",
    "rejoinder data add all downloads/ --data data",
    "rejoinder data fetch stsb,snli",
    "rejoinder data licences dan-multitask-modern --pairs pairs/",
)

DataFolder = Annotated[Path, typer.Option("--data", help="Folder of data sets.")]
Overwrite = Annotated[bool, "Replace files that differ."]


commands = typer.Typer(
    help="List, download and lay out data sets.", no_args_is_help=True, epilog=_EPILOG
)


@commands.command("list", epilog=_EPILOG)
@options.prints("json")
def list_sets(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME[,NAME]")] = None,
    data: DataFolder = Path("data"),
) -> None:
    """Show data sets: rows, licence, citation, address, SHA-256, and whether you have them.

    Args:
        names: Data sets or groups to show in full. Default: a table of all sets.
    """
    from rejoinder.datasets.acquire.layout import presence
    from rejoinder.datasets.catalogue import catalogue, select

    chosen = options.split_lists(names or [])
    shown = [(dataset, presence(data, dataset)) for dataset in select(chosen or ["all"])]
    remark = catalogue().remark
    if output.asked_for("json"):
        sets = [{**asdict(one), "rows": one.rows, "here": asdict(here)} for one, here in shown]
        output.print_json({"remark": remark, "sets": sets})
    elif chosen:
        for dataset, here in shown:
            _show(dataset, here)
        typer.echo(f"  {remark}")
    else:
        columns = ("id", "rows", "here", "what", "licence", "citation")
        rows = [
            (one.id, one.rows, here.state, one.what, one.licence, one.citation)
            for one, here in shown
        ]
        _print_rows(columns, rows, f"Data sets below {data}")
        notes = [note for _, here in shown for note in (*here.problems, *here.notes)]
        hint = "`rejoinder data list NAME` shows licence, citation, addresses, files and SHA-256."
        for sentence in (*notes, hint, remark):
            output.status_line(f"  {sentence}")


@commands.command("add", epilog=_EPILOG)
@options.prints("json")
def add_sets(
    name: Annotated[str, typer.Argument(metavar="NAME[,NAME]...")],
    files: Annotated[list[Path], typer.Argument()],
    data: DataFolder = Path("data"),
    overwrite: Overwrite = False,
) -> None:
    """Recognise and check local files, and copy them into the folder of data sets.

    Args:
        name: Data sets or groups; `all` adds every data set it recognises.
        files: Archives, files or folders.
    """
    from rejoinder.datasets.acquire.layout import add
    from rejoinder.datasets.catalogue import select

    added = add(select(options.split_lists([name])), files, data, overwrite=overwrite)
    _print_added(added, data)


@commands.command("fetch", epilog=_EPILOG)
@options.prints("json")
def fetch_sets(
    names: Annotated[list[str], typer.Argument(metavar="NAME[,NAME]")],
    data: DataFolder = Path("data"),
    overwrite: Overwrite = False,
) -> None:
    """Download data sets from their official addresses and lay them out.

    Run the same command again to resume an interrupted download.

    Args:
        names: Data sets (stsb) or groups (sts, senteval, probing, all).
    """
    from rejoinder.datasets.acquire.layout import Failed, fetch
    from rejoinder.datasets.catalogue import select

    datasets = select(options.split_lists(names))
    with Bar("bytes") as bar:
        results = list(fetch(datasets, data, bar.show, overwrite=overwrite))
    failed = [result for result in results if isinstance(result, Failed)]
    _print_added(results, data)
    for failure in failed:
        output.complain(f"{failure.id}: {output.as_options(failure.reason)}")
    if failed:
        raise typer.Exit(2)


@commands.command("licences", epilog=_EPILOG)
@options.prints("json", "tsv")
def list_licences(
    config: Annotated[str | None, typer.Argument(metavar="[NAME|FILE]")] = None,
    pairs: options.PairsOption = None,
) -> None:
    """Show the licences of all data in the recipes, or of a config's data.

    Sources of conversations are recognised by the files that --pairs was extracted from. Your own
    data is not in the table: its licence is "not stated", which counts as not open.

    Args:
        config: Config of `rejoinder train`: show only its data. Default: all known data.
    """
    from rejoinder.datasets.catalogue import all_rows

    if config is None and pairs is not None:
        raise InputError("--pairs is read with a config; name a config.")
    if config is None:
        shown = all_rows()
    else:
        from rejoinder.corpus.writer import open_pairs
        from rejoinder.training.config.loading import load_config
        from rejoinder.training.data.preparation import data_rows

        loaded = load_config(config)
        shown = data_rows(loaded, None if pairs is None else open_pairs(pairs))
    columns = ("name", "rows", "licence", "open", "kind", "from", "citation")
    rows = [
        (row.name, "" if row.rows is None else row.rows, str(row.licence),
         "yes" if row.licence.open else "no", row.kind, row.licence.origin, row.licence.citation)
        for row in shown
    ]  # fmt: skip
    _print_rows(columns, rows, "Licences of training data")
    if config is not None:
        count = sum(not row.licence.open for row in shown)
        output.status_line(f"  {count} of {len(shown)} are not openly licensed")


def _print_rows(columns: "Sequence[str]", rows: "Sequence[Sequence[Any]]", title: str) -> None:
    """Prints rows; in a table, only the first four columns, which fit into 80 characters."""
    count = 4 if output.form_of_output() == "table" else len(columns)
    output.print_rows(columns[:count], [row[:count] for row in rows], title)


def _print_added(results: "Sequence[Added | Failed]", data: Path) -> None:
    """Prints the number of files of each set, and its notes."""
    from rejoinder.datasets.acquire.layout import Added

    if output.printed_json([asdict(result) for result in results]):
        return
    for result in results:
        if isinstance(result, Added):
            typer.echo(f"{result.id}: {len(result.files)} files below {data}")
            for note in result.notes:
                typer.echo(f"  {note}")


def _show(dataset: "DataSet", here: "Presence") -> None:
    typer.echo(f"{dataset.id}: {dataset.name}. {dataset.what}.")
    facts = [
        ("rows", f"{dataset.rows:,}. {dataset.note}".rstrip()),
        ("licence", dataset.licence),
        ("citation", dataset.citation),
        ("here", here.state),
        *(("address", address) for address in dataset.addresses or dataset.pages),
        *((f"SHA-256 of {name}", digest) for name, digest in (dataset.sha256 or {}).items()),
    ]
    for file in dataset.files:
        rows = f"{file.rows:,} rows" if file.rows else "rows unknown"
        state = "not here" if file.path in here.missing else "here"
        facts.append((file.path, f"{rows}, {state if file.needed else 'optional'}"))
    for label, text in facts:
        typer.echo(f"  {label}: {text}")
    for sentence in (*here.problems, *here.notes):
        typer.echo(f"  {sentence}")


_LEAK_COLUMNS = ("train", "train_rows", "evaluation", "sentences", "of_sentences", "rows", "pairs",
            "of_pairs")  # fmt: skip
"""The keys of JSON without the examples."""


@options.prints("json")
def leaks(
    train: Annotated[list[str], typer.Option(metavar="PATH[,PATH]...")],
    evaluation: Annotated[
        list[str] | None, typer.Option("--eval", metavar="SET[,SET]...", show_default=False)
    ] = None,
    show: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Count the sentences and pairs of evaluation sets that occur in training data.

    Texts are compared by letters and digits only, in lower case. A pipe gets TSV, one row per set.
    Only a terminal and JSON get the sentences of --show.

    Args:
        train: Folders of `rejoinder extract` (the train split), JSON lines of inference pairs,
            paraphrases or groups, or text: one sentence per line, or several separated by tabs.
        evaluation: Sets: stsb-train, stsb-dev, stsb-test, sts12 to sts15, sts2017, snli-dev,
            snli-test, mrpc-test, cqa2016-dev, cqa2016-test, mr, cr, subj, sst2-dev, sst2-test,
            trec-test, sts2017-languages (tracks 1 to 4 and 6), flores200. A name without its split,
            such as stsb, means all its splits. Or files. Default: all sets.
        show: Number of sentences to show per set.

    Examples:
        rejoinder leaks --train pairs/ --eval stsb-test,snli
        rejoinder leaks --train multinli.jsonl.zst,captions.jsonl --show 5
        rejoinder leaks --train pairs/ --eval my_test.tsv --json
    """
    from rejoinder.datasets.leaks import evaluation_sets, find_leaks

    sources = [Path(name) for name in options.split_lists(train)]
    if not sources:
        raise InputError("--train names no file or folder.")
    sets = evaluation_sets(options.split_lists(evaluation or ()))
    with Bar("rows") as progress:
        results = find_leaks(sources, sets, examples=show, progress=progress.show)
    form = output.form_of_output()
    if form == "json":
        output.print_json([asdict(leak) for leak in results])
    elif form == "tsv":
        output.print_rows(
            _LEAK_COLUMNS, [[getattr(leak, name) for name in _LEAK_COLUMNS] for leak in results]
        )
    else:
        for source in dict.fromkeys(leak.train for leak in results):
            _show_leaks([leak for leak in results if leak.train == source])


def _show_leaks(leaks: "Sequence[Leak]") -> None:
    """Prints a table of the sets that leak into a source, examples, and the sets that do not."""
    columns = _LEAK_COLUMNS[2:]
    rows = [[getattr(leak, name) for name in columns] for leak in leaks if leak.sentences]
    source = leaks[0].train
    if rows:
        output.print_rows(columns, rows, f"{source}: {leaks[0].train_rows:,} rows")
    for leak in leaks:
        for text in leak.examples:
            typer.echo(f"  {leak.evaluation}: {text}")
    if clean := ", ".join(leak.evaluation for leak in leaks if not leak.sentences):
        typer.echo(f"  {source} has no sentence of {clean}")
