"""The configs that come with the package, by name."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from rejoinder.errors import InputError, nearest

_SUFFIX = ".toml"


def _folder() -> Traversable:
    return files("rejoinder").joinpath("data", "configs")


def shipped_names() -> Sequence[str]:
    """Returns the names of the shipped configs in alphabetical order."""
    names = (file.name for file in _folder().iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def is_shipped_name(config: str) -> bool:
    """Whether a string can only be a name: it has no path separator and no `.toml` at its end.

    >>> [is_shipped_name(config) for config in ("demo", "./demo", "demo.toml")]
    [True, False, False]
    """
    return not ({"/", "\\"} & {*config} or config.lower().endswith(_SUFFIX))


def shipped_text(name: str) -> str:
    """Returns the TOML of a shipped config.

    Raises:
        InputError: No shipped config has this name.
    """
    if name not in shipped_names():
        raise InputError(
            f"there is no shipped config {name!r} ({nearest(name, shipped_names())}); "
            f"the path of a file contains a separator or ends in {_SUFFIX}."
        )
    return _folder().joinpath(name + _SUFFIX).read_text("utf-8")


def purpose(name: str) -> str:
    """Returns what a shipped config is for, which is the first line of its file, a comment."""
    return shipped_text(name).partition("\n")[0].removeprefix("#").strip()


def encoder_kind(name: str) -> str:
    """Returns the kind of encoder of a shipped config; reading it needs no extra."""
    return str(tomllib.loads(shipped_text(name))["encoder"]["kind"])
