"""Writes the page that documents every key of a config, from the models that check it.

    python tools/config_reference.py > docs/config.md

A test compares the page with the code.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

from rejoinder.io.schema.nodes import Node
from rejoinder.io.schema.toml import toml_value
from rejoinder.training.config.settings import RunConfig

_HEAD = """# Config

This page lists every key of a config, the TOML file of a run. `rejoinder train` checks a config
before it reads data and reports all faults together. It refuses unknown keys, and keys that have
no effect in this config: `optimizer.adam_betas` without Adam, `training.rank_init` with a
Transformer.

- `--config` takes the path of a TOML file or the name of a shipped config; `rejoinder config list`
  lists those.
- `rejoinder config show NAME` prints a whole config with its defaults, to start your own from.
- `rejoinder config check FILE` reports the faults of a config without training.
- Keys can be replaced on the command line: `encoder.width=300`, `phases.0.steps=2000`.

The page is generated: `python tools/config_reference.py > docs/config.md`.
"""
_TABLE = "| key | allowed | default | meaning |\n|---|---|---|---|"


def page() -> str:
    """Returns the page as Markdown."""
    root = Node.of(RunConfig)
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
        tag = f", `{inside.tag} = {toml_value(kind)}`" if kind else ""
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
            default = f"`{toml_value(value)}`"
        meaning = " ".join(node.facts.get("description", "The kind of this table.").split())
        yield f"| `{key}` | {node.allowed()} | {default} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
