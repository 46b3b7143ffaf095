"""Writes the page that documents every key of a config, from the models that check it.

    python tools/config_reference.py > docs/config.md

A test compares the page with the code.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rejoinder.encoders.settings import Settings
from rejoinder.training.config.settings import config_class

_HEAD = """# Config keys

Every key of a config, the TOML file of a run. `rejoinder train` checks a config before it reads
data and reports all faults together: unknown keys, values out of range, and keys without effect,
such as `training.rank_init` with a Transformer. [Train](train.md#configs) has the commands.
`int 1–9` allows 1 and 9; `>0–1` excludes 0, `0–<1` excludes 1.

The page is generated: `python tools/config_reference.py > docs/config.md`.
"""
_LONGEST = 100
"""Characters of a default that is printed."""
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
        'int 1–5,000'
        """
        facts = self.facts
        if "anyOf" in facts:
            options = [option for option in facts["anyOf"] if option.get("type") != "null"]
            return " or ".join(self._at(option).allowed() for option in options)
        if self.tag is not None:
            return "table"
        if "const" in facts or "enum" in facts:
            return choices(facts.get("enum") or [facts["const"]])
        match facts.get("type"):
            case "integer":
                return f"int{_range(facts)}"
            case "number":
                return f"number{_range(facts)}"
            case "boolean":
                return "bool"
            case "string":
                return "string"
            case "array":
                return self._list()
        return "table" if self.values is None else f"table of {self.values.allowed()}"

    def _list(self) -> str:
        return "list" if self.item is None else f"list of {self.item.allowed()}"


def choices(values: Sequence[object]) -> str:
    """Joins values with commas and a final "or".

    >>> choices(["words", "subwords"])
    '"words" or "subwords"'
    """
    *most, last = map(toml_text, values)
    return f"{', '.join(most)} or {last}" if most else last


def _range(facts: Mapping[str, Any]) -> str:
    """Describes the bounds of a number, with a leading space. Empty without bounds."""
    # some versions of Pydantic give bounds as they are written in the code, others as floats
    least, above, most, below = (
        None if facts.get(name) is None else f"{facts[name]:,.15g}"
        for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    )
    low = least if least is not None else above and f">{above}"
    high = most if most is not None else below and f"<{below}"
    if low is None or high is None:
        return f" {low or high}" if low or high else ""
    return f" {low}–{high}"


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
    """Yields a section for each kind of a table, or of the tables in a list.

    Keys that are the same in several kinds come first, once.
    """
    inside = node.item or node
    heading = f"[[{name}]]" if node.item else f"[{name}]"
    kinds = inside.kinds or {"": inside}
    tables = {kind: _own_rows(table, inside.tag) for kind, table in kinds.items()}
    shared: dict[tuple[str, ...], list[str]] = {}
    for row in dict.fromkeys(row for rows in tables.values() for row in rows):
        having = tuple(kind for kind, rows in tables.items() if row in rows)
        if len(having) > 1:
            shared.setdefault(having, []).append(row)
    for having, rows in shared.items():
        which = f"every `{inside.tag}`" if len(having) == len(kinds) else f"`{'`, `'.join(having)}`"
        yield from ("", f"## `{heading}`, {which}", "", _TABLE, *rows)
    common = {row for rows in shared.values() for row in rows}
    seen: dict[tuple[str, ...], str] = {}
    for kind, table in kinds.items():
        tag = f", `{inside.tag} = {toml_text(kind)}`" if kind else ""
        rows = [row for row in tables[kind] if row not in common]
        yield from _section(f"## `{heading}`{tag}", table, rows)
        for key, value in table.keys.items():
            if value.item and value.item.keys:
                rows = _own_rows(value.item, None)
                earlier = seen.setdefault(tuple(rows), kind)
                if earlier == kind:
                    yield from _section(f"### `[[{name}.{key}]]`{tag}", value.item, rows)
                else:
                    yield from ("", f"`[[{name}.{key}]]` as for `{earlier}`.")


def _own_rows(table: Node, tag: str | None) -> list[str]:
    """Returns the rows of a table's keys, without the key that tells its kinds apart."""
    return [*_rows({key: node for key, node in table.keys.items() if key != tag}, table.required)]


def _section(heading: str, table: Node, rows: Sequence[str]) -> Iterator[str]:
    yield from ("", heading, "", str(table.facts.get("description", "")))
    if rows:
        yield from ("", _TABLE, *rows)


def _rows(keys: Mapping[str, Node], required: Sequence[str]) -> Iterator[str]:
    for key, node in keys.items():
        value = node.facts.get("default")
        if key in required:
            default = "required"
        elif value is None:
            default = "absent" if node.optional else "none"
        else:
            default = f"`{toml_text(value)}`" if len(str(value)) <= _LONGEST else "…"
        meaning = " ".join(node.facts.get("description", "").split())
        yield f"| `{key}` | {node.allowed()} | {default} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
