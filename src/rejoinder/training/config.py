"""Configurations from TOML: every fault is found, and all are told, before the work begins."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rejoinder.errors import ConfigError, InputError
from rejoinder.schema.base import Settings
from rejoinder.schema.faults import faults, refused
from rejoinder.schema.toml import toml_document
from rejoinder.training.idle import idle_keys
from rejoinder.training.settings import RunConfig


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a TOML file, with `key=value` overrides, checked.

    Raises:
        InputError: the file can't be read or is not TOML.
        ConfigError: all faults of keys, values and their combinations, one a line.
    """
    tree = _read(path)
    for override in overrides:
        _apply(tree, override)
    return parse_config(tree, str(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; a config is a TOML file.") from None
    except ValueError:
        raise InputError(f"{str(path)!r} is no name of a file: it holds a NUL.") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{path} is not TOML: its values are nested too deeply.") from None
    except ValueError as error:  # also a number of more digits than Python reads
        raise InputError(f"{path} is not TOML: {error}.") from None


def parse_config(tree: Mapping[str, Any], where: str) -> RunConfig:
    """The configuration in a tree of plain values; `where` names it in messages.

    Raises:
        ConfigError: see `load_config`.
    """
    values = dict(tree) if isinstance(tree, Mapping) else tree
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise refused(where, [*faults(RunConfig, error), *_further(values, error)]) from None


def _further(tree: Any, error: ValidationError) -> list[str]:
    """What the tables that are right contradict among themselves, where others are not."""
    faulty = frozenset(details["loc"][0] for details in error.errors() if details["loc"])
    if not faulty or not isinstance(tree, dict):
        return []  # the contradictions are what the error tells
    rest = {name: value for name, value in tree.items() if name not in faulty}
    try:
        RunConfig.model_validate(rest, context={"faulty": faulty})
    except ValidationError as further:
        return faults(RunConfig, further)
    return []


def to_tree(config: Any) -> Any:
    """Plain values of a configuration: what `parse_config` reads, and JSON and TOML can write.

    Written out here, key by key in the order of their definition: what is hashed and stored must
    not depend on how a version of Pydantic dumps a model.
    """
    if isinstance(config, Settings):
        values = {name: to_tree(getattr(config, name)) for name in type(config).model_fields}
        return {name: value for name, value in values.items() if value is not None}
    if isinstance(config, tuple):
        return [to_tree(item) for item in config]
    if isinstance(config, Mapping):
        return dict(config)
    return config


def to_toml(config: RunConfig) -> str:
    """The configuration as TOML: every key that has an effect, also where it is at its default."""
    tree = to_tree(config)
    for path in idle_keys(config):
        _remove(tree, path)
    return toml_document(tree)


def _remove(tree: dict[str, Any], path: str) -> None:
    *steps, last = path.split(".")
    table: Any = tree
    for step in steps:
        table = table[int(step)] if isinstance(table, list) else table[step]
    table.pop(last, None)


def _apply(tree: dict[str, Any], override: str) -> None:
    """Set one `a.b.c=value`; the value is TOML, or a bare word for a string."""
    name, found, text = override.partition("=")
    path = name.strip().split(".")
    if not found or not all(path):
        raise ConfigError(
            f"{override!r} is not an override; write key=value, as encoder.width=300."
        )
    *steps, last = path
    table: Any = tree
    for step in steps:
        table = _child(table, step, name)
    if isinstance(table, list):
        if not _is_index(last, table):
            raise ConfigError(
                f"{name!r}: {steps[-1]} is a list of {len(table)}; write {steps[-1]}.0.{last}=…."
            )
        table[int(last)] = _parsed(text)
    else:
        table[last] = _parsed(text)


def _parsed(text: str) -> Any:
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text  # a line break would begin another key


def _child(table: Any, step: str, name: str) -> Any:
    if isinstance(table, list):
        if not _is_index(step, table):
            raise ConfigError(f"{name!r}: {step!r} is no index of a list of {len(table)}.")
        child = table[int(step)]
    else:
        child = table.setdefault(step, {})
    if not isinstance(child, dict | list):
        raise ConfigError(f"{name!r}: {step} is a value, it has no keys.")
    return child


def _is_index(step: str, values: list[Any]) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(values)
