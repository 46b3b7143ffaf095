"""`rejoinder models`: lists the models that come with the package. Opens what `--model` means.

`rejoinder card`: writes the model card of a model with its results.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import output
from rejoinder.cli.messages import split_lists
from rejoinder.cli.options import OnTooLong, epilog, prints
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.inference.encoder import SentenceEncoder


EXAMPLES = epilog(
    "rejoinder models",
    "rejoinder models --json",
)
_COLUMNS = ("name", "default", "kind", "dim", "bytes", "licence", "folder")


@prints("json", "tsv")
def models() -> None:
    """List the models that come with the package: name, dimension, size, licence."""
    from rejoinder.models.find import shipped_models

    facts = [_facts(name, folder) for name, folder in shipped_models().items()]
    # a folder of this length would leave the other columns no room
    columns = _COLUMNS[:-1] if output.form_of_output() == "table" else _COLUMNS
    output.print_rows(columns, [[row[name] for name in columns] for row in facts])
    if not facts:
        output.note("this installation has no models; give the path of a model folder")


def _facts(name: str, folder: Path) -> dict[str, Any]:
    from rejoinder.models.card import licence_of
    from rejoinder.models.config import known_kind, read_config
    from rejoinder.models.find import DEFAULT
    from rejoinder.models.folder import folder_bytes

    encoder = read_config(folder)["encoder"]
    kind = known_kind(encoder, str(folder))
    return {
        "name": name,
        "default": name == DEFAULT,
        "kind": kind.name,
        "dim": kind.dim(encoder),
        "bytes": folder_bytes(folder),
        "licence": licence_of(folder),
        "folder": str(folder),
    }


def model_folder(model: str | None, sha256: str | None) -> Path:
    """Returns the folder of the model that `--model` and `--model-sha256` mean.

    Without `--model` that is the default model. A download is shown as it goes.

    Raises:
        RejoinderError: there is no such model, or it can't be downloaded.
    """
    from rejoinder.models.find import find_model, is_address, shipped_model

    if model is None:
        if sha256 is not None:
            raise InputError(
                "--model-sha256 is for a MODEL at an https address, and none is given."
            )
        return shipped_model()
    if not is_address(model):
        return find_model(model, sha256)
    from rejoinder.cli.progress import Bar

    with Bar("bytes") as bar:
        return find_model(model, sha256, bar.show)


def given_model(model: str | None, sha256: str | None) -> Path | None:
    """Returns what `model_folder` does, or None without `--model`, as an index has its own.

    Raises:
        RejoinderError: as for `model_folder`.
    """
    return model_folder(model, sha256) if model or sha256 else None


def open_encoder(
    model: str | None, sha256: str | None, on_too_long: OnTooLong
) -> "SentenceEncoder":
    """Loads the model that `--model` and `--model-sha256` mean, as `model_folder` does."""
    from rejoinder.inference.encoder import SentenceEncoder

    return SentenceEncoder.load(model_folder(model, sha256), on_too_long=on_too_long)


def note_too_long(encoder: "SentenceEncoder", count: int, total: int, texts: str) -> None:
    """Notes how many `texts` (a plural noun) are too long for the model, and what was done."""
    if not count:
        return
    most = encoder.describe()["max_tokens"]
    done = "the rest was not read"
    if encoder.on_too_long == "split":
        done = f"each is the mean of pieces of {most:,} tokens"
    output.note(f"more than {most:,} tokens in {count:,} of {total:,} {texts}: {done}")


CARD_EXAMPLES = epilog(
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
    if output.asked_for("json"):
        output.print_json({"out": str(written)})
    else:
        output.status_line(f"wrote {written}")
