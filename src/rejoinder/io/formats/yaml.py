"""Plain values as YAML: for front matter, which other programs read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def yaml_text(tree: Mapping[str, Any]) -> str:
    r"""Returns a mapping of strings, numbers, booleans, lists and mappings as a YAML block.

    Keys are written as they are. Strings are quoted, in the form that JSON and YAML share.

    >>> print(yaml_text({"tags": ["a: b"], "results": [{"split": "dev", "value": 0.5}]}), end="")
    tags:
    - "a: b"
    results:
    - split: "dev"
      value: 0.5
    """
    return "".join(f"{line}\n" for line in _mapping(tree))


def _mapping(tree: Mapping[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield f"{key}:"
            yield from (f"  {line}" for line in _mapping(value))
        elif isinstance(value, list | tuple) and value:
            yield f"{key}:"
            yield from _items(value)
        else:
            yield f"{key}: {_scalar(value)}"


def _items(values: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *rest = _mapping(value)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        else:
            yield f"- {_scalar(value)}"


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as a string
    # YAML forbids some of the characters that JSON allows, and folds lines at others
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
