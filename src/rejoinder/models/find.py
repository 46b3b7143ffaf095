"""Finds the folder of a model that is given by name, by path or by address.

The models that are installed, by name: those of the package, and those of other packages.
"""

from collections import ChainMap
from importlib.resources import files
from os import PathLike
from pathlib import Path
from reprlib import repr as short

from rejoinder.errors import InputError, ModelError
from rejoinder.models import remote
from rejoinder.models.config import FILE
from rejoinder.models.config import FILE as CONFIG


def find_model(
    model: object, sha256: str | None = None, progress: remote.Progress | None = None
) -> Path:
    """Returns the folder of a model given by name, by path or by address.

    A string without a separator is the name of a shipped model, or a folder where none has this
    name. A `Path`, and a string with a separator, is a folder. A model at an address needs the
    `sha256` of its archive, and `progress` is told of its download (`models.remote`).

    Raises:
        InputError: the argument is neither a string nor a path, or `sha256` is given for a model
            that is not at an address; also what `models.remote.cached_model` raises.
        ModelError: there is neither a model nor a folder of that name, or both.
    """
    if remote.is_address(model):
        return remote.cached_model(str(model), sha256, progress)
    if sha256 is not None:
        raise InputError(
            f"sha256 is for a model at an https address; {short(model)} is a name or a folder, "
            "whose files are checked without it."
        )
    if not isinstance(model, str | PathLike):
        raise InputError(
            "a model is given by its name, folder or https address, a string or a Path; "
            f"got {short(model)}."
        )
    try:
        path = Path(model)
    except TypeError:  # a path of bytes
        raise InputError(f"the path of a model folder is text; got {model!r}.") from None
    if model != path.name:
        return path
    try:
        shipped = shipped_model(path.name)
    except ModelError:
        if _exists(path):
            return path
        raise
    if _exists(path / CONFIG):
        raise ModelError(
            f"{path.name!r} is an installed model, and a model folder here, too. The folder is "
            f"given as ./{path.name}, the installed model as {shipped}."
        )
    return shipped


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is too long
        return False


DEFAULT = "rejoinder-base"
"""Name of the model that is used where none is named."""
FOLDER = Path(str(files("rejoinder").joinpath("data", "models")))
"""The folder of the shipped models. A build without models does not have it."""
GROUP = "rejoinder.models"
"""Entry points of other packages: each is a package whose folders that are models are installed."""


def shipped_models() -> dict[str, Path]:
    """Returns the folders of the installed models by name, in alphabetical order.

    A model of this package comes before one of the same name in another.
    """
    from importlib.metadata import entry_points  # takes 40 ms, and few models are elsewhere

    packages = sorted({point.value for point in entry_points(group=GROUP)})
    others = [_models_in(Path(str(files(package)))) for package in packages]
    return dict(sorted(ChainMap(_models_in(FOLDER), *others).items()))


def _models_in(folder: Path) -> dict[str, Path]:
    return {config.parent.name: config.parent for config in folder.glob(f"*/{FILE}")}


def shipped_model(name: str = DEFAULT) -> Path:
    """Returns the folder of an installed model.

    Raises:
        ModelError: no installed model has this name; the message lists those that there are.
    """
    found = _models_in(FOLDER)
    if name not in found:
        found = shipped_models()
    if name in found:
        return found[name]
    known = ", ".join(found)
    raise ModelError(
        f"no model named {short(name)} is installed "
        f"({f'installed: {known}' if known else 'this installation has no models'}). Give the "
        "path of a model folder that is there, such as RUN/model."
    )
