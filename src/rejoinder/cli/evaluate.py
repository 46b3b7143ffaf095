"""`rejoinder evaluate`: a model and tasks to a table and results.json."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rejoinder.evaluation.results import Missing, Result

_EPILOG = """Examples:

rejoinder evaluate runs/dan/model --tasks response --pairs pairs/

rejoinder evaluate runs/dan/model --tasks response,stsb,sts,senteval,cqa --pairs pairs/
--data ../shared/data --out results.json --skip-missing

rejoinder evaluate baseline:bow --tasks sts --data ../shared/data

rejoinder evaluate st:all-MiniLM-L6-v2 --tasks senteval --data data --mode compat

rejoinder evaluate --repeat results.json

rejoinder evaluate st:all-MiniLM-L6-v2 --adaptation adapted/ --tasks stsb,sts
--data ../shared/data

rejoinder evaluate py:my_module:my_encode --tasks stsb --data ../shared/data --worst 20
"""
_SHOWN_GROUPS = 10
_SMALL_GROUP = 100
_DETAILED = 6
"""Results up to which all that they hold is shown."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("evaluate", epilog=_EPILOG)(evaluate)


def evaluate(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model folder, py:MODULE:FUNCTION, st:NAME (sentence-transformers), vectors:FILE, "
            "or baseline:bow, tfidf, random, average:FILE, sif:FILE, doc2vec:FILE, "
            "soft-cosine:FILE."
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            help="Tasks or groups, joined by commas: response, stsb, sts, senteval, probing, cqa, "
            "or one, as trec."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets.")] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Folder of `rejoinder extract`, for response.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the pairs that is ranked.")] = "test",
    form: Annotated[
        str | None, typer.Option(help="STS data as official or senteval; default: either.")
    ] = None,
    mode: Annotated[
        str, typer.Option(help="Classifiers: fast, or compat (as SentEval fits them).")
    ] = "fast",
    pytorch: Annotated[
        bool, typer.Option(help="In compat, SentEval's PyTorch classifier and its penalties.")
    ] = False,
    nhid: Annotated[int, typer.Option(min=0, help="Hidden units of classifiers.")] = 0,
    kfold: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 10,
    text: Annotated[str, typer.Option(help="Of CQA's questions: subject, body, both.")] = "both",
    seed: Annotated[int, typer.Option(help="Of the draw of negatives and the intervals.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write results.json there, after each task; what it has is not redone."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Redo what OUT has.")] = False,
    skip_missing: Annotated[
        bool, typer.Option(help="Exit 0 although data of some tasks is missing.")
    ] = False,
    worst: Annotated[int, typer.Option(min=0, help="Show so many items with large errors.")] = 0,
    adaptation: Annotated[
        Path | None,
        typer.Option(help="What `rejoinder adapt` wrote for an encoder that is no model folder."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Keep embeddings there, for later runs of the encoder.")
    ] = None,
    repeat: Annotated[
        Path | None,
        typer.Option(help="Run what made this results.json again, and show what differs."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Score an encoder: response selection, SentEval, SemEval STS, community questions."""
    import json

    from rejoinder.errors import InputError
    from rejoinder.evaluation.results import as_tree, read_results, read_run

    if repeat is not None:
        asked = dict(read_run(repeat))
    elif model is None or tasks is None:
        raise InputError("a model and --tasks are needed, or --repeat results.json.")
    else:
        asked = {
            "encoder": model,
            "adaptation": None if adaptation is None else str(adaptation),
            "tasks": tasks,
            "data": None if data is None else str(data),
            "pairs": None if pairs is None else str(pairs),
            "split": split,
            "form": form,
            "text": text,
            "seed": seed,
            "classifiers": {"mode": mode, "usepytorch": pytorch, "nhid": nhid, "kfold": kfold},
        }
    results, missing = _run(asked, out, cache, overwrite=overwrite)
    if json_output:
        trees: Any = [as_tree(result) for result in results]
        typer.echo(json.dumps(trees))
    elif repeat is not None:
        show_differences(read_results(repeat), results)
    else:
        show(results)
        show_worst(results, worst)
    for reason in dict.fromkeys(one.reason for one in missing):
        names = ", ".join(one.task for one in missing if one.reason == reason)
        typer.echo(f"rejoinder: {names} missing: {reason}", err=True)
    if missing and not skip_missing:
        raise typer.Exit(2)


def _run(
    asked: "Mapping[str, Any]", out: Path | None, cache: Path | None, *, overwrite: bool
) -> "tuple[list[Result], list[Missing]]":
    """Run what was asked for; results are saved after each task, those that OUT has are kept."""
    from rejoinder.cli.evaluation_inputs import open_encoder, response_pairs
    from rejoinder.cli.progress import task_bar
    from rejoinder.evaluation.classifiers.settings import ClassifierSettings
    from rejoinder.evaluation.results import Missing, read_results, write_results
    from rejoinder.evaluation.run import evaluate as run
    from rejoinder.evaluation.run import identity
    from rejoinder.evaluation.tasks.base import Context

    pairs = asked["pairs"]
    context = Context(
        data=None if asked["data"] is None else Path(asked["data"]),
        pairs=None if pairs is None else lambda: response_pairs(Path(pairs), asked["split"]),
        form=asked["form"],
        seed=asked["seed"],
        classifiers=ClassifierSettings(**asked["classifiers"]),
        text=asked["text"],
    )
    adaptation = asked.get("adaptation")
    encoder = open_encoder(asked["encoder"], None if adaptation is None else Path(adaptation))
    results: list[Result] = []
    if out is not None and out.exists() and not overwrite:
        results = read_results(out)
        _check_same(out, results, dict(identity(encoder)))
    done = {result.task for result in results}
    missing: list[Missing] = []
    with task_bar() as progress:
        wanted = asked["tasks"].split(",")
        outcomes = run(
            encoder, wanted, context, skip=done.__contains__, progress=progress, cache=cache
        )
        for outcome in outcomes:
            if isinstance(outcome, Missing):
                missing.append(outcome)
                continue
            results.append(outcome)
            if out is not None:
                results = write_results(out, results, asked)
    return results, missing


def show_differences(before: "Sequence[Result]", now: "Sequence[Result]") -> None:
    """Print every score that is not what it was, and how many are."""
    from rejoinder.cli.output import print_table

    found = {(one.task, one.split): one for one in now}
    rows: list[tuple[object, ...]] = []
    same = 0
    for result in before:
        again = found.get((result.task, result.split))
        for name, value in result.scores.items():
            other = again.scores.get(name) if again else None
            if other == value:
                same += 1
            else:
                rows.append(
                    (result.task, result.split, name, value, "–" if other is None else other)
                )
        if again and again.data != result.data:
            rows.append((result.task, result.split, "data", str(result.data), str(again.data)))
    if rows:
        print_table("", ("task", "split", "score", "before", "now"), rows)
    typer.echo(f"{same} scores are the same, {len(rows)} differ")


def _check_same(out: Path, results: "Sequence[Result]", about: dict[str, Any]) -> None:
    from rejoinder.errors import InputError

    for result in results:
        if dict(result.encoder) != about:
            raise InputError(
                f"{out} holds results of {result.encoder.get('name')}, another encoder than "
                f"{about.get('name')} or another version of it; name another file, or --overwrite."
            )


def _rows(result: "Result", detailed: bool) -> "list[tuple[object, ...]]":
    """The lines of a result: all scores and the larger groups, or the main score alone."""
    names = list(result.scores) if detailed else [result.main]
    rows: list[tuple[object, ...]] = []
    for name in names:
        interval = ""
        if name in result.intervals:
            interval = "{:.4f} to {:.4f}".format(*result.intervals[name])
        value = result.scores[name]
        rows.append((result.task, result.split, "all", result.n, name, value, interval))
    if not detailed or len(result.groups) < 2:
        return rows
    large = sorted(result.groups.items(), key=lambda item: -item[1].n)
    for group, figures in [item for item in large if item[1].n >= _SMALL_GROUP][:_SHOWN_GROUPS]:
        name = result.main if result.main in figures.scores else next(iter(figures.scores))
        value = figures.scores[name]
        rows.append((result.task, result.split, group, figures.n, name, value, ""))
    return rows


def show(results: "Sequence[Result]") -> None:
    """Print results as one table: with all scores and groups where they are few."""
    from rejoinder.cli.output import print_table

    rows = [row for result in results for row in _rows(result, len(results) <= _DETAILED)]
    title = f"{results[0].encoder.get('name', '')}" if results else ""
    print_table(title, ("task", "split", "part", "n", "score", "value", "95 % interval"), rows)
    said: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes:
            said.setdefault(note, []).append(f"{result.task} on {result.split}")
    for note, where in said.items():
        typer.echo(f"  {', '.join(dict.fromkeys(where))}: {note}")
    training = results[0].encoder.get("training") if results else None
    if isinstance(training, dict) and training.get("pairs"):
        typer.echo(f"  trained on {training['pairs']:,} pairs, seed {training.get('seed')}")


def show_worst(results: "Sequence[Result]", count: int) -> None:
    """Print the items with the largest errors: of scores the distance of ranks, else the wrong."""
    from rejoinder.cli.output import print_table
    from rejoinder.evaluation.results import worst_items

    for result in results if count else ():
        if result.items is None:
            continue
        rows = worst_items(result, count)
        print_table(f"{result.task} on {result.split}", ("item", "predicted", "gold", "text"), rows)
