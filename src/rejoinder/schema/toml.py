"""Plain values as TOML; the standard library reads it and does not write it."""

import json
import re
from collections.abc import Mapping
from typing import Any


def toml_document(tree: Mapping[str, Any]) -> str:
    """A tree of plain values as TOML: values first, then each table and list of tables.

    >>> print(toml_document({"name": "a", "text": {"words": 3}, "phases": [{"steps": 1}]}), end="")
    name = "a"
    <BLANKLINE>
    [text]
    words = 3
    <BLANKLINE>
    [[phases]]
    steps = 1
    """
    lines = [f"{_key(name)} = {toml_value(item)}" for name, item in tree.items() if _plain(item)]
    for name, value in tree.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(name)}]", *_pairs(value)]
        elif not _plain(value):
            for table in value:
                lines += ["", f"[[{_key(name)}]]", *_pairs(table)]
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value on one line.

    >>> toml_value({"labels": {"n/a": ""}, "layers": [1, 2.5], "residual": True})
    '{labels = {"n/a" = ""}, layers = [1, 2.5], residual = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # the escapes of JSON are TOML's; JSON lets a DEL stand as it is
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pairs(value)) + "}"
    return repr(value)


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {toml_value(item)}" for name, item in table.items()]


def _plain(value: Any) -> bool:
    """Whether a value is written behind its key, not as a table of its own."""
    tables = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    return not tables and not isinstance(value, dict)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)
