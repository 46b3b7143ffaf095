"""`rejoinder card`: writes the model card of a model with its results."""

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.lines import split_lists
from rejoinder.cli.options import epilog, prints
from rejoinder.cli.output import asked_for, print_json, status_line

EXAMPLES = epilog(
    "rejoinder card runs/dan/model --results dan.json",
    "rejoinder card runs/dan/model --results dan.json --baseline bow.json",
    "rejoinder card exported/ --run runs/dan --out card.md",
)


@prints("json")
def card(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model name, or folder such as RUN/model.")
    ],
    results: Annotated[
        list[str] | None, typer.Option(metavar="FILE[,FILE]", help="Results files of this model.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE[,FILE]", help="Results files of encoders to compare with."),
    ] = None,
    run: Annotated[
        Path | None,
        "Run that trained the model: its machine and minutes are named. Default: the "
        "folder that the model is in, if it is a run.",
    ] = None,
    out: Annotated[Path | None, "File to write. Default: MODEL_CARD.md of the model."] = None,
) -> None:
    """Write the card of a model: data, licences, recipe, results with intervals, limits."""
    from rejoinder.api.card import write_card

    own, others = split_lists(results or ()), split_lists(baseline or ())
    written = write_card(model, results=own, baselines=others, run=run, out=out)
    if asked_for("json"):
        print_json({"out": str(written)})
    else:
        status_line(f"wrote {written}")
