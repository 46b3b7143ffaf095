"""`rejoinder models`: lists the models that come with the package. Opens what `--model` means."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.cli.options import OnTooLong, epilog, prints
from rejoinder.cli.output import form_of_output, note, print_rows
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
    from rejoinder.models.shipped import shipped_models

    facts = [_facts(name, folder) for name, folder in shipped_models().items()]
    # a folder of this length would leave the other columns no room
    columns = _COLUMNS[:-1] if form_of_output() == "table" else _COLUMNS
    print_rows(columns, [[row[name] for name in columns] for row in facts])
    if not facts:
        note("this installation has no models; give the path of a model folder")


def _facts(name: str, folder: Path) -> dict[str, Any]:
    from rejoinder.models.config import read_config
    from rejoinder.models.folder import folder_bytes
    from rejoinder.models.layout import known_kind
    from rejoinder.models.shipped import DEFAULT
    from rejoinder.models.terms import licence_of

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
    from rejoinder.models.find import find_model
    from rejoinder.models.remote import is_address
    from rejoinder.models.shipped import shipped_model

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
    note(f"more than {most:,} tokens in {count:,} of {total:,} {texts}: {done}")
