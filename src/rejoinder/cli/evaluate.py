"""`rejoinder evaluate`: a model and tasks to a table and results.json."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rejoinder.evaluation.results import Result
    from rejoinder.protocols import Encodes

_EPILOG = """Examples:

rejoinder evaluate runs/dan/model --tasks response --pairs pairs/

rejoinder evaluate runs/dan/model --tasks response,stsb --pairs pairs/ --data ../shared/data
--out results.json

rejoinder evaluate py:my_module:my_encode --tasks stsb --data ../shared/data
"""
_SHOWN_GROUPS = 10
_SMALL_GROUP = 100


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate", epilog=_EPILOG)(evaluate)


def evaluate(
    model: Annotated[str, typer.Argument(help="Model folder, or py:MODULE:FUNCTION of your own.")],
    tasks: Annotated[str, typer.Option(help="Tasks, joined by commas: response, stsb.")],
    data: Annotated[Path | None, typer.Option(help="Folder of data sets, for stsb.")] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Folder of `rejoinder extract`, for response.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the pairs that is ranked.")] = "test",
    form: Annotated[
        str | None, typer.Option(help="STS Benchmark as official or senteval; default: either.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw of negatives and the intervals.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write results.json there.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Score an encoder on response selection and the STS Benchmark."""
    import json
    from dataclasses import asdict

    from rejoinder.cli.evaluation_inputs import response_pairs
    from rejoinder.evaluation.results import write_results
    from rejoinder.evaluation.run import evaluate as run

    results = list(
        run(
            load_encoder(model),
            tasks.split(","),
            data=data,
            pairs=None if pairs is None else lambda: response_pairs(pairs, split),
            form=form,
            seed=seed,
        )
    )
    if out is not None:
        write_results(out, results)
    if json_output:
        typer.echo(json.dumps([asdict(result) for result in results]))
    else:
        show(results)


def load_encoder(name: str) -> "Encodes":
    """The encoder that a name on the command line means.

    Raises:
        RejoinderError: there is none of that name.
    """
    from rejoinder.errors import InputError

    if not name.startswith("py:"):
        from rejoinder.runtime.encoder import SentenceEncoder

        return SentenceEncoder.load(name)
    _, _, place = name.partition(":")
    module, _, function = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"{name!r} names no function: {error}; write py:MODULE:FUNCTION."
        ) from None

    class _Called:
        """A function from sentences to vectors."""

        encode = staticmethod(found)

        @staticmethod
        def describe() -> dict[str, object]:
            return {"name": name}

    return _Called()


def show(results: "Sequence[Result]") -> None:
    """Print results as one table, with intervals, groups and notes."""
    from rejoinder.cli.output import print_table

    rows = []
    for result in results:
        for name, value in result.scores.items():
            low, high = result.intervals.get(name, (float("nan"), float("nan")))
            interval = f"{low:.4f} to {high:.4f}" if low == low else ""
            rows.append((result.task, result.split, "all", result.n, name, value, interval))
        large = sorted(result.groups.items(), key=lambda item: -item[1].n)
        shown = [item for item in large if item[1].n >= _SMALL_GROUP][:_SHOWN_GROUPS]
        for group, figures in shown if len(large) > 1 else []:
            value = figures.scores[result.main]
            rows.append((result.task, result.split, group, figures.n, result.main, value, ""))
    title = f"{results[0].encoder.get('name', '')}" if results else ""
    print_table(title, ("task", "split", "part", "n", "score", "value", "95 % interval"), rows)
    for note in dict.fromkeys(
        f"{result.task} on {result.split}: {note}" for result in results for note in result.notes
    ):
        typer.echo(f"  {note}")
    training = results[0].encoder.get("training") if results else None
    if isinstance(training, dict) and training.get("pairs"):
        typer.echo(f"  trained on {training['pairs']:,} pairs, seed {training.get('seed')}")
