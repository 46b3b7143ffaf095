"""The models that are installed, by name: those of the package, and those of other packages."""

from collections import ChainMap
from importlib.resources import files
from pathlib import Path
from reprlib import repr as short

from rejoinder.errors import ModelError
from rejoinder.models.config import FILE

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
