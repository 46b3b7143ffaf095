"""Configurations from TOML: every fault is found, and all are told, before the work begins."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rejoinder.encoders.bilstm import BilstmConfig
from rejoinder.encoders.dan import DanConfig
from rejoinder.encoders.transformer import TransformerConfig
from rejoinder.errors import ConfigError, InputError, nearest
from rejoinder.training.contradictions import contradictions
from rejoinder.training.settings import RunConfig, TaskData

_KINDS: dict[str, type[DanConfig] | type[TransformerConfig] | type[BilstmConfig]] = {
    "bilstm": BilstmConfig,
    "dan": DanConfig,
    "transformer": TransformerConfig,
}


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The configuration in a TOML file, with `key=value` overrides, checked.

    Raises:
        InputError: the file can't be read or is not TOML.
        ConfigError: all unknown keys, wrong types and contradictions, one a line.
    """
    try:
        tree = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from None
    for override in overrides:
        _apply(tree, override)
    return parse_config(tree, str(path))


def parse_config(tree: Mapping[str, Any], place: str) -> RunConfig:
    """The configuration in a tree of plain values; `place` names it in messages.

    Raises:
        ConfigError: see `load_config`.
    """
    faults: list[str] = []
    config = _build(RunConfig, tree, "", faults)
    if not faults and isinstance(config, RunConfig):
        faults += contradictions(config)
        if not faults:
            return config
    raise ConfigError(f"{place}: " + "; ".join(faults))


def to_tree(config: Any) -> Any:
    """Plain values of a configuration: what `parse_config` reads, and JSON and TOML can write."""
    if is_dataclass(config):
        values = {item.name: to_tree(getattr(config, item.name)) for item in fields(config)}
        return {name: value for name, value in values.items() if value is not None}
    if isinstance(config, tuple):
        return [to_tree(item) for item in config]
    if isinstance(config, Mapping):
        return dict(config)
    return config


def to_toml(config: RunConfig) -> str:
    """The configuration as TOML: every key, also those left at their defaults."""
    tree = to_tree(config)
    lines = [f"{name} = {_toml(value)}" for name, value in tree.items() if not _is_table(value)]
    for name, value in tree.items():
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_toml(item)}" for key, item in value.items())]
        elif _is_table(value):
            for table in value:
                lines += ["", f"[[{name}]]"]
                lines += [f"{key} = {_toml(item)}" for key, item in table.items()]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_toml(item)}" for name, item in value.items())
        return f"{{{inner}}}"
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _apply(tree: dict[str, Any], override: str) -> None:
    """Set one `a.b.c=value`; the value is TOML, or a bare word for a string."""
    name, found, text = override.partition("=")
    if not found:
        raise ConfigError(
            f"{override!r} is not an override; write key=value, as encoder.width=300."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *path, last = name.strip().split(".")
    here: Any = tree
    for step in path:
        here = _child(here, step, name)
    if isinstance(here, list):
        raise ConfigError(f"{name!r}: {path[-1]} is a list; write {path[-1]}.0.{last}=….")
    here[last] = value


def _child(here: Any, step: str, name: str) -> Any:
    if isinstance(here, list):
        if not step.isdigit() or int(step) >= len(here):
            raise ConfigError(f"{name!r}: {step!r} is no place in a list of {len(here)}.")
        return here[int(step)]
    child = here.setdefault(step, {})
    if not isinstance(child, dict | list):
        raise ConfigError(f"{name!r}: {step} is a value, it has no keys.")
    return child


def _build(kind: type, tree: Any, place: str, faults: list[str]) -> Any:
    """An instance of the dataclass `kind`; what is wrong is added to `faults`."""
    if not isinstance(tree, Mapping):
        faults.append(f"{place or 'the file'} must be a table, got {tree!r}")
        return None
    known = {item.name: item for item in fields(kind)}
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    before = len(faults)
    for name, value in tree.items():
        path = f"{place}.{name}" if place else name
        if name not in known:
            faults.append(f"unknown key {path!r}, {nearest(name, known)}")
            continue
        values[name] = _value(hints[name], value, path, faults)
    faults += [
        f"{place}.{name} is missing" for name, item in known.items() if _needed(item, values)
    ]
    if len(faults) > before:
        return None
    try:
        return kind(**values)
    except ConfigError as error:
        faults.append(str(error).rstrip("."))
        return None


def _needed(item: Field[Any], values: Mapping[str, Any]) -> bool:
    return item.name not in values and item.default is MISSING and item.default_factory is MISSING


def _value(hint: Any, value: Any, path: str, faults: list[str]) -> Any:
    """`value` as `hint` wants it."""
    origin = get_origin(hint)
    if path == "encoder":
        name = value.get("kind", "dan") if isinstance(value, Mapping) else "dan"
        if name not in _KINDS:
            faults.append(f"encoder.kind {name!r}, {nearest(str(name), _KINDS)}")
            return None
        return _build(_KINDS[name], value, path, faults)
    if hint is TaskData and isinstance(value, str):
        value = {"path": value}
    if is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, value, path, faults)
    if origin is Literal:
        if value not in get_args(hint):
            faults.append(f"{path} {value!r}, allowed: {', '.join(map(repr, get_args(hint)))}")
        return value
    if origin in (Union, UnionType):
        inner = next(option for option in get_args(hint) if option is not type(None))
        return _value(inner, value, path, faults)
    if origin is Mapping:
        return _words(value, path, faults)
    if origin is tuple:
        return _sequence(get_args(hint), value, path, faults)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        faults.append(f"{path} must be of type {hint.__name__}, got {value!r}")
    return value


def _words(value: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        faults.append(f"{path} must be a table of strings, got {value!r}")
        return {}
    return dict(value)


def _sequence(inner: tuple[Any, ...], value: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(value, list):
        faults.append(f"{path} must be a list, got {value!r}")
        return None
    if inner[-1] is not Ellipsis and len(value) != len(inner):
        faults.append(f"{path} must have {len(inner)} values, got {len(value)}")
        return None
    return tuple(
        _value(inner[0], item, f"{path}.{number}", faults) for number, item in enumerate(value)
    )
