"""Configs from TOML files: all faults are found and reported before any work begins.

The configs that come with the package, by name.
"""

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from rejoinder.errors import ConfigError, InputError, nearest
from rejoinder.io.schema import Settings, faults, refused, shown
from rejoinder.training.config.checks import contradictions, idle_keys
from rejoinder.training.config.settings import RunConfig, config_class

VOCABULARY_KEYS = ("kind", "bigram_buckets", "unknown_buckets", "max_tokens")
"""Keys of `[text]` that a stored vocabulary must agree with."""


def load_config(config: RunConfig | Path | str, overrides: Sequence[str] = ()) -> RunConfig:
    """Returns a config, checked.

    Args:
        config: The path of a TOML file, or as a string also the name of a shipped config, such
            as `dan-modern`. A string is a path if it contains a separator or ends in `.toml`. Or
            a config to which the overrides apply.
        overrides: Settings to replace, as `key=value` (see `docs/config.md`).

    Raises:
        InputError: The name is unknown, or the file can't be read or is not TOML.
        ConfigError: Keys, values or their combinations have faults. The message lists all of
            them, one per line.
    """
    if isinstance(config, RunConfig):
        where, text = config.name, to_toml(config)
    elif isinstance(config, str) and is_shipped_name(config):
        where, text = config, shipped_text(config)
    else:
        where, text = str(config), _read(Path(config))
    tree = _parsed_toml(text, where)
    for override in overrides:
        _apply(tree, override)
    return parse_config(tree, where)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        shipped = not path.exists() and path.stem in shipped_names()
        hint = f" The shipped config is called {path.stem}." if shipped else ""
        raise InputError(f"{path} can't be read: {error.strerror}.{hint}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; a config is a TOML file.") from None
    except ValueError:
        raise InputError(f"{str(path)!r} is not a file name: it contains a NUL.") from None


def _parsed_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where} is not TOML: its values are nested too deeply.") from None
    except ValueError as error:  # also a number with more digits than Python reads
        raise InputError(f"{where} is not TOML: {error}.") from None


def parse_config(tree: Mapping[str, Any], where: str) -> RunConfig:
    """Returns the config in a tree of plain values, such as TOML or JSON holds.

    Messages name the tree as `where`.

    Raises:
        ConfigError: See `load_config`.
    """
    if not isinstance(tree, Mapping):
        raise refused(where, [f"a config is a table; found {shown(tree)}"])
    values = deepcopy(dict(tree))
    model = config_class()
    lines: list[str] = []
    faulty: frozenset[Any] = frozenset()
    try:
        config = model.model_validate(values)
    except ValidationError as error:
        lines = faults(model, values, error)
        if not all(details["loc"] for details in error.errors()):  # such as half a surrogate pair
            raise refused(where, lines) from None
        # the correct tables of a config are checked together with the defaults of the others
        faulty = frozenset(details["loc"][0] for details in error.errors())
        rest = {name: value for name, value in values.items() if name not in faulty}
        config = model.model_validate(rest)
    lines += contradictions(config, faulty)
    if lines:
        raise refused(where, lines)
    return config


def to_tree(config: Any) -> Any:
    """Returns a config as plain values, which JSON and TOML can hold and `parse_config` reads.

    Keys come in the order of their definition. This does not use Pydantic's own dump, because
    hashes and stored configs must not depend on the version of Pydantic.
    """
    if isinstance(config, Settings):
        values = {name: to_tree(getattr(config, name)) for name in type(config).model_fields}
        return {name: value for name, value in values.items() if value is not None}
    if isinstance(config, tuple):
        return [to_tree(item) for item in config]
    if isinstance(config, Mapping):
        return dict(config)
    return config


def effective_tree(config: RunConfig) -> dict[str, Any]:
    """Returns the keys of a config that have an effect, including those at their defaults."""
    tree: dict[str, Any] = to_tree(config)
    for path in idle_keys(config):
        _remove(tree, path)
    return tree


def to_toml(config: RunConfig) -> str:
    """Returns a config as TOML: every key that has an effect, including those at their defaults."""
    return tomli_w.dumps(effective_tree(config))


def _remove(tree: dict[str, Any], path: str) -> None:
    *steps, last = path.split(".")
    table: Any = tree
    for step in steps:
        table = table[int(step)] if isinstance(table, list) else table[step]
    table.pop(last, None)


def _apply(tree: dict[str, Any], override: str) -> None:
    """Sets one `a.b.c=value`, where the value is TOML or a bare word for a string."""
    name, equals, text = override.partition("=")
    path = name.strip().split(".")
    if not equals or not all(path):
        raise ConfigError(
            f"{override!r} is not an override; write key=value, such as encoder.width=300."
        )
    *steps, last = path
    table: Any = tree
    for step in steps:
        key = _key(table, step, name)
        table = table[key] if isinstance(table, list) else table.setdefault(key, {})
        if not isinstance(table, dict | list):
            raise ConfigError(f"{name!r}: {step} is a value and has no keys.")
    table[_key(table, last, name)] = _parsed_value(text)


def _key(table: dict[str, Any] | list[Any], step: str, name: str) -> Any:
    if isinstance(table, dict):
        return step
    if step not in map(str, range(len(table))):
        raise ConfigError(
            f"{name!r}: {step!r} is not an index of a list of {len(table)}; write, for example, "
            "phases.0.steps=1000."
        )
    return int(step)


def _parsed_value(text: str) -> Any:
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text  # a line break would start another key


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
