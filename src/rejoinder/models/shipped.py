"""The models that come with the package, by name: each folder of `data/models` is one."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from reprlib import repr as short

from rejoinder.errors import ModelError
from rejoinder.models.config import FILE

DEFAULT = "rejoinder-base"
"""Name of the model that is used where none is named."""
FOLDER = Path(str(files("rejoinder").joinpath("data", "models")))
"""The folder of the shipped models. A build without models does not have it."""


def shipped_models() -> Mapping[str, Path]:
    """Returns the folders of the shipped models by name, in alphabetical order."""
    return {config.parent.name: config.parent for config in sorted(FOLDER.glob(f"*/{FILE}"))}


def shipped_model(name: str = DEFAULT) -> Path:
    """Returns the folder of a shipped model.

    Raises:
        ModelError: no shipped model has this name; the message lists those that there are.
    """
    models = shipped_models()
    if name not in models:
        known = f"installed: {', '.join(models)}" if models else "this installation has no models"
        raise ModelError(
            f"no model named {short(name)} is installed ({known}). Give the path of a model folder "
            "that is there, such as RUN/model."
        )
    return models[name]
