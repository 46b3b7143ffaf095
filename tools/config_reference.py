"""Writes the page that documents every key of a config, from the models that check it.

    python tools/config_reference.py > docs/config.md

A test compares the page with the code.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rejoinder.io.schema import Settings
from rejoinder.training.config.settings import config_class

_HEAD = """# Config

This page lists every key of a config, the TOML file of a run. `rejoinder train` checks a config
before it reads data and reports all faults together. It refuses unknown keys, and keys that have
no effect in this config: `objective.max_scale` without a learned scale, `training.rank_init` with a
Transformer.

- `--config` takes the path of a TOML file or the name of a shipped config; `rejoinder config list`
  lists those.
- `rejoinder config show NAME` prints a whole config with its defaults, to start your own from.
- `rejoinder config check FILE` reports the faults of a config without training.
- Keys can be replaced on the command line: `encoder.width=300`, `phases.0.steps=2000`.

The page is generated: `python tools/config_reference.py > docs/config.md`.
"""
_TABLE = "| key | allowed | default | meaning |\n|---|---|---|---|"


@dataclass(frozen=True)
class Node:
    """One position in the schema of a model: a table, a list or a value."""

    root: Mapping[str, Any]
    """The whole schema, whose `$defs` references point to."""
    facts: Mapping[str, Any]
    """The part of the schema at this position, with references resolved."""

    @classmethod
    def of(cls, model: type[Settings]) -> Self:
        """Returns the node of a whole model."""
        schema = model.model_json_schema()
        return cls(schema, schema)

    @property
    def tag(self) -> str | None:
        """The key that tells the kinds of this table apart. None where there is only one."""
        name: str | None = self.facts.get("discriminator", {}).get("propertyName")
        return name

    @property
    def kinds(self) -> dict[str, "Node"]:
        """The kinds of this table, by the value of `tag`."""
        mapping = self.facts.get("discriminator", {}).get("mapping", {})
        return {name: self._at({"$ref": reference}) for name, reference in mapping.items()}

    @property
    def keys(self) -> dict[str, "Node"]:
        """The keys of a table."""
        properties = self.facts.get("properties", {})
        return {name: self._at(facts) for name, facts in properties.items()}

    @property
    def required(self) -> Sequence[str]:
        """The keys that a table must have."""
        names: Sequence[str] = self.facts.get("required", ())
        return names

    @property
    def values(self) -> "Node | None":
        """The values of a table that takes any key."""
        facts = self.facts.get("additionalProperties")
        return self._at(facts) if isinstance(facts, Mapping) else None

    @property
    def item(self) -> "Node | None":
        """The values of a list."""
        facts = self.facts.get("items") or next(iter(self.facts.get("prefixItems", ())), None)
        return self._at(facts) if isinstance(facts, Mapping) else None

    @property
    def optional(self) -> bool:
        """Whether the value may be absent without having a default."""
        return "null" in (option.get("type") for option in self.facts.get("anyOf", ()))

    def _at(self, facts: Mapping[str, Any]) -> "Node":
        if "$ref" in facts:
            target = self.root["$defs"][facts["$ref"].rpartition("/")[2]]
            facts = {**target, **{key: value for key, value in facts.items() if key != "$ref"}}
        return Node(self.root, facts)

    def allowed(self) -> str:
        """Describes the allowed values.

        >>> Node({}, {"type": "integer", "minimum": 1, "maximum": 5_000}).allowed()
        'a whole number from 1 to 5,000'
        """
        facts = self.facts
        if "anyOf" in facts:
            options = [option for option in facts["anyOf"] if option.get("type") != "null"]
            return " or ".join(self._at(option).allowed() for option in options)
        if self.tag is not None:
            return "a table"
        if "const" in facts or "enum" in facts:
            return choices(facts.get("enum") or [facts["const"]])
        match facts.get("type"):
            case "integer":
                return f"a whole number{_range(facts)}"
            case "number":
                return f"a number{_range(facts)}"
            case "boolean":
                return "true or false"
            case "string":
                return f"a string{_length(facts, 'Length', 'characters')}"
            case "array":
                return self._list()
        return "a table" if self.values is None else f"a table, each value {self.values.allowed()}"

    def _list(self) -> str:
        if self.item is None:
            return "a list"
        size = len(self.facts.get("prefixItems", ()))
        count = f" of {size}" if size else _length(self.facts, "Items", "values")
        return f"a list{count}, each {self.item.allowed()}"


def choices(values: Sequence[object]) -> str:
    """Joins values with commas and a final "or".

    >>> choices(["words", "subwords"])
    '"words" or "subwords"'
    """
    *most, last = map(toml_text, values)
    return f"{', '.join(most)} or {last}" if most else last


def _length(facts: Mapping[str, Any], suffix: str, unit: str) -> str:
    """Describes the bounds of a length, which the schema calls `min…` and `max…`."""
    least, most = facts.get(f"min{suffix}", 0), facts.get(f"max{suffix}")
    if most is None:
        return ""
    return f" of {least} to {most:,} {unit}" if least else f" of at most {most:,} {unit}"


def _range(facts: Mapping[str, Any]) -> str:
    """Describes the bounds of a number, with a leading space. Empty without bounds."""
    return " ".join(["", *_bounds(facts)])


def _bounds(facts: Mapping[str, Any]) -> Iterator[str]:
    # some versions of Pydantic give bounds as they are written in the code, others as floats
    least, above, most, below = (
        None if facts.get(name) is None else f"{facts[name]:,.15g}"
        for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    )
    if least is not None:
        yield f"from {least}"
    elif above is not None:
        yield f"above {above}"
    if most is not None:
        yield f"to {most}" if least is not None else f"up to {most}"
    elif below is not None:
        yield f"to below {below}"


def toml_text(value: object) -> str:
    """Returns a value that is not a table as TOML, which writes it as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def page() -> str:
    """Returns the page as Markdown."""
    root = Node.of(config_class())
    plain = {name: node for name, node in root.keys.items() if not _is_table(node)}
    lines = [_HEAD, "## Top level", "", _TABLE, *_rows(plain, ())]
    for name, node in root.keys.items():
        if name not in plain:
            lines += _table(name, node)
    return "\n".join(lines) + "\n"


def _is_table(node: Node) -> bool:
    inside = node.item or node
    return bool(inside.tag or inside.keys)


def _table(name: str, node: Node) -> Iterator[str]:
    """Yields a section for each kind of a table, or of the tables in a list."""
    inside = node.item or node
    heading = f"[[{name}]]" if node.item else f"[{name}]"
    for kind, table in (inside.kinds or {"": inside}).items():
        tag = f", `{inside.tag} = {toml_text(kind)}`" if kind else ""
        yield from _section(f"## `{heading}`{tag}", table)
        for key, value in table.keys.items():
            if value.item and value.item.keys:
                yield from _section(f"### `[[{name}.{key}]]`{tag}", value.item)


def _section(heading: str, table: Node) -> Iterator[str]:
    yield from ("", heading, "", str(table.facts.get("description", "")), "", _TABLE)
    yield from _rows(table.keys, table.required)


def _rows(keys: Mapping[str, Node], required: Sequence[str]) -> Iterator[str]:
    for key, node in keys.items():
        value = node.facts.get("default")
        if key in required:
            default = "required"
        elif value is None:
            default = "absent" if node.optional else "none"
        else:
            default = f"`{toml_text(value)}`"
        meaning = " ".join(node.facts.get("description", "The kind of this table.").split())
        yield f"| `{key}` | {node.allowed()} | {default} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
