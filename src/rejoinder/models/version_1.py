"""Model folders of format version 1, read as version 2: other names of tables and tensors."""

import re
from collections.abc import Mapping
from typing import Any

_PREFIXES = (
    (r"embedding$", "encoder.table.weight"),
    (r"bigram_rows$", "encoder.bigram_rows"),
    (r"dan\.", "encoder.dnn.layers."),
    (r"skip\.weight$", "encoder.dnn.skip.weight"),
    (r"(transformer|bilstm)\.", "encoder."),
    (r"head\.", "heads.responses.layers."),
    (r"entailment\.", "heads.entailment.layers."),
)
"""Beginnings of names in version 1, and those of version 2."""


def upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `config.json` of version 1 with the tables of version 2, not yet checked."""
    rest = {name: value for name, value in config.items() if name not in ("head", "entailment")}
    heads = {"responses": _head(config.get("head"), 1)}
    if config.get("entailment") is not None:
        heads["entailment"] = _head(config["entailment"], 4)
    return {**rest, "heads": heads}


def renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensors of a folder of version 1 by their present names.

    >>> list(renamed({"dan.0.bias": 0, "head.1.weight": 1, "scale": 2}))
    ['encoder.dnn.layers.0.bias', 'heads.responses.layers.1.weight', 'scale']
    """
    return {_renamed(name): tensor for name, tensor in tensors.items()}


def _renamed(name: str) -> str:
    for old, new in _PREFIXES:
        if re.match(old, name):
            return re.sub(f"^{old}", new, name)
    return name


def _head(table: object, inputs: int) -> object:
    if not isinstance(table, Mapping):
        return table  # refused when the tables are checked
    return {"inputs": inputs, **{key: value for key, value in table.items() if key != "kind"}}
