"""The page of a config's keys, from the models that check them.

    python -m rejoinder.training.reference > docs/config.md

writes the page anew; a test compares the two.
"""

import sys
from collections.abc import Iterator

from rejoinder.schema.nodes import Node
from rejoinder.schema.toml import toml_value
from rejoinder.training.settings import RunConfig

_HEAD = """# Config

Every key of a run's TOML file. `rejoinder train` checks a config before it reads data, and tells
all faults together. A key that is not here is refused, and so is one that has no effect in the
config as it is (`optimizer.adam_betas` without Adam, `training.rank_init` with a Transformer). Keys
can be replaced on the command line: `encoder.width=300`, `phases.0.steps=2000`. `configs/` has
examples.

This page is made from the code: `python -m rejoinder.training.reference > docs/config.md`.
"""
_TABLE = "| key | allowed | default | meaning |\n|---|---|---|---|"


def page() -> str:
    """The page, in Markdown."""
    root = Node.of(RunConfig)
    plain = {name: node for name, node in root.keys.items() if not _is_table(node)}
    lines = [_HEAD, "## At the top", "", _TABLE, *_rows(plain, ())]
    for name, node in root.keys.items():
        if name not in plain:
            lines += _table(name, node)
    return "\n".join(lines) + "\n"


def _is_table(node: Node) -> bool:
    inside = node if node.item is None else node.item
    return bool(inside.tag or inside.keys)


def _table(name: str, node: Node) -> Iterator[str]:
    """A section for each kind of a table, or of the tables of a list."""
    listed = node.item is not None
    inside = node.item or node
    heading = f"[[{name}]]" if listed else f"[{name}]"
    kinds = inside.kinds or {"": inside}
    for kind, table in kinds.items():
        tag = f", `{inside.tag} = {toml_value(kind)}`" if kind else ""
        yield from ("", f"## `{heading}`{tag}", "")
        yield from (str(table.facts.get("description", "")), "", _TABLE)
        yield from _rows(table.keys, table.needed)
        for key, value in table.keys.items():
            if value.item is not None and value.item.keys:
                yield from ("", f"### `[[{name}.{key}]]`{tag}", "")
                yield from (str(value.item.facts.get("description", "")), "", _TABLE)
                yield from _rows(value.item.keys, value.item.needed)


def _rows(keys: dict[str, Node], needed: object) -> Iterator[str]:
    for key, node in keys.items():
        default = node.facts.get("default")
        if isinstance(needed, list) and key in needed:
            said = "needed"
        elif default is None:
            said = "absent" if node.optional else "none"
        else:
            said = f"`{toml_value(default)}`"
        meaning = node.facts.get("description", "The kind of this table.")
        yield f"| `{key}` | {node.allowed()} | {said} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
