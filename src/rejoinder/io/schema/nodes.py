"""A model's JSON schema as a tree of nodes, each of which says in words what it allows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from rejoinder.io.schema.base import Settings
from rejoinder.io.schema.toml import toml_value


@cache
def _schema(model: type[Settings]) -> Mapping[str, Any]:
    return model.model_json_schema()


def forget_schemas() -> None:
    """Makes later calls read the schemas of models again; needed after a model was rebuilt."""
    _schema.cache_clear()


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
        schema = _schema(model)
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
    def options(self) -> Sequence[str]:
        """The allowed strings, where only some are allowed."""
        strings: Sequence[str] = self.facts.get("enum", ())
        return strings

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
    *most, last = map(toml_value, values)
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
