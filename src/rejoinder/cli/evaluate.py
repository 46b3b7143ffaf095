"""`rejoinder evaluate`: a model and tasks to a table and results.json."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.cli.evaluation_run import Repetition
    from rejoinder.evaluation.results import Missing

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
_WITH_REPEAT = ("repeat", "cache", "skip_missing", "json_output")
"""Parameters that act on a repetition."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("evaluate", epilog=_EPILOG)(evaluate)


def evaluate(
    command: typer.Context,
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
        typer.Option(
            help="Write results.json there, after each task. What it has of the same encoder, "
            "data and settings is not scored again; results of other settings stay beside it."
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(help="Score again what OUT has; drop what it has of another encoder."),
    ] = False,
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
        typer.Option(
            help="Score every result of this results.json again, each as it was asked for, and "
            "show what differs."
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Score an encoder: response selection, SentEval, SemEval STS, community questions."""
    from rejoinder.cli.evaluation_run import run_asked
    from rejoinder.cli.evaluation_tables import show_results, worst_of
    from rejoinder.cli.output import form_of
    from rejoinder.errors import InputError

    shown = form_of(as_json=json_output, as_tsv=False)
    if repeat is not None:
        _refuse_beside_repeat(command)
        missing = _repeat(repeat, cache, shown)
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
        outcome = run_asked(asked, out, cache, overwrite=overwrite)
        places = range(len(outcome.results) if worst else 0)
        items = {place: worst_of(outcome.results[place], worst, out) for place in places}
        show_results(outcome.results, items, shown)
        if outcome.reused:
            typer.echo(
                f"rejoinder: {outcome.reused} of these results were in {out} already, of the same "
                "encoder, data and settings; --overwrite scores them again.",
                err=True,
            )
        missing = outcome.missing
    for reason in dict.fromkeys(one.reason for one in missing):
        names = ", ".join(one.task for one in missing if one.reason == reason)
        typer.echo(f"rejoinder: {names} missing: {reason}", err=True)
    if missing and not skip_missing:
        raise typer.Exit(2)


def _refuse_beside_repeat(command: typer.Context) -> None:
    """Refuse options that a repetition would not look at.

    Raises:
        InputError: there is one.
    """
    from rejoinder.errors import InputError

    for parameter in command.command.params:
        source = command.get_parameter_source(parameter.name or "")
        if parameter.name not in _WITH_REPEAT and source and source.name == "COMMANDLINE":
            named = parameter.opts[-1] if parameter.opts[-1].startswith("-") else "a model"
            raise InputError(
                f"--repeat takes the encoder and all settings from the file; leave out {named}."
            )


def _repeat(path: Path, cache: Path | None, form: str) -> "list[Missing]":
    """Score the results of a file again, and show what differs."""
    import json

    from rejoinder.cli.evaluation_run import repeat
    from rejoinder.cli.fitting import Column, print_fitted
    from rejoinder.cli.output import print_rows

    found, missing = repeat(path, cache)
    same, rows = _differences(found)
    columns = ("task", "split", "score", "before", "now")
    if form == "json":
        differ = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps({"same": same, "differ": differ}))
        return missing
    if form == "tsv":
        print_rows(columns, rows, form)
    elif rows:
        print_fitted("", [Column(name) for name in columns], rows)
    typer.echo(f"{same} scores are the same, {len(rows)} differ", err=form == "tsv")
    return missing


def _differences(found: "Sequence[Repetition]") -> tuple[int, list[tuple[Any, ...]]]:
    """How many scores are what they were, and a row for each that is not."""
    same = 0
    rows: list[tuple[Any, ...]] = []
    for one in found:
        before, now = one.before, one.now
        where = (before.task, before.split)
        for name, value in before.scores.items():
            again = now.scores.get(name) if now else None
            if again == value:
                same += 1
            else:
                rows.append((*where, name, value, "–" if again is None else again))
        if now and now.data != before.data:
            sha256 = (str(result.data.get("sha256"))[:12] for result in (before, now))
            rows.append((*where, "data", *sha256))
        if now and dict(now.encoder) != dict(before.encoder):
            names = (
                str(result.encoder.get("sha256", result.encoder.get("name")))[:24]
                for result in (before, now)
            )
            rows.append((*where, "encoder", *names))
    return same, rows
