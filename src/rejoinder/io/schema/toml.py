"""Values as TOML on a single line, for messages; tomli-w spreads lists over several lines."""

import json
import re
from collections.abc import Mapping
from typing import Any


def toml_value(value: Any) -> str:
    """Returns a value as TOML on one line.

    >>> toml_value({"labels": {"n/a": ""}, "layers": [1, 2.5], "residual": True})
    '{labels = {"n/a" = ""}, layers = [1, 2.5], residual = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON and TOML share their escapes, but JSON leaves DEL unescaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(name)} = {toml_value(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)
