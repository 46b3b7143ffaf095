"""Configs that somebody mistyped: the trees and the texts of real ones, changed."""

import json
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

from fuzzing.models import mutated_bytes, mutated_tree
from rejoinder.errors import RejoinderError
from rejoinder.training.config.loading import load_config, parse_config, to_toml, to_tree
from rejoinder.training.loop.checkpoint import config_hash
from runs import KINDS

CONFIGS = Path(str(files("rejoinder") / "data" / "configs"))
_VALUES = (
    "0", "-1", "1e999", "nan", "-inf", "9" * 30, "9" * 5_000, "0x10", "1_000", "true", '""', "''",
    '"dan"', "[]", "[1, 2]", "[[]]", "{}", "{kind = 'dan'}", "1979-05-27", "07:32:00", '"\\u0000"',
    '"\\ud800"', '"""a\nb"""', "[" * 2_000, "{a=" * 500, "0.5", "1", "2.0", "é", "'relu'", "1e-320",
)  # fmt: skip
_LINES = ("[", "[[tasks]]", "[encoder]", "[phases]", "[[phases]]", "= 1", "a", '"" = 1', "[text]",
          "[a.b]", "encoder = 5", "[training]", "\ufeff", "\0", "# é", "a.b.c = 1")  # fmt: skip


def bases() -> dict[str, str]:
    """The texts of real configs, by name."""
    texts = {path.name: path.read_text("utf-8") for path in sorted(CONFIGS.glob("*.toml"))}
    return texts | {kind: tomli_w.dumps(tree) for kind, tree in KINDS.items()}


def mutated_text(random: Random, text: str) -> bytes:
    """The text of a config with a line or a value changed, or its bytes."""
    if random.random() < 0.2:
        return mutated_bytes(random, text.encode())
    lines = text.split("\n")
    for _ in range(random.choice((1, 1, 2, 4))):
        row = random.randrange(len(lines))
        key = lines[row].partition("=")[0]
        match random.randrange(6):
            case 0:
                lines.insert(row, lines[random.randrange(len(lines))])
            case 1:
                lines.insert(row, random.choice(_LINES))
            case 2 if len(lines) > 1:
                del lines[row]
            case 3:
                lines[row] = lines[row].replace("e", "", 1)
            case _:
                lines[row] = f"{key}= {random.choice(_VALUES)}"
    return "\n".join(lines).encode()


def overrides(random: Random, tree: Mapping[str, Any]) -> list[str]:
    """Up to three `key=value`, of keys that are there or nearly."""
    found = []
    for _ in range(random.choice((0, 0, 1, 3))):
        path, node = [], tree
        while isinstance(node, dict | list) and node and random.random() < 0.9:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            key = random.choice(keys)
            path.append(str(key))
            node = node[key]
        if random.random() < 0.3:
            path.insert(random.randint(0, len(path)), random.choice(("", "0", "-1", "kind", "²")))
        found.append(".".join(path) + random.choice(("=",) * 9 + ("",)) + random.choice(_VALUES))
    return found


def checker(folder: Path) -> Callable[[Random], bool]:
    """What reads one changed config; true: it is a config, and its TOML says the same."""
    texts = list(bases().values())
    trees = [tomllib.loads(text) for text in texts]
    place = folder / "config.toml"

    def accepted(random: Random) -> Any:
        number = random.randrange(len(texts))
        if random.random() < 0.5:
            tree = trees[number]
            for _ in range(random.choice((1, 1, 2, 3))):
                tree = mutated_tree(random, tree)
            return parse_config(tree, "a tree")
        place.write_bytes(mutated_text(random, texts[number]))
        return load_config(place, overrides(random, trees[number]))

    def checked(random: Random) -> bool:
        try:
            config = accepted(random)
        except RejoinderError as error:
            assert str(error).isprintable() or "\n" in str(error)  # noqa: PT017
            str(error).encode()
            return False
        again = parse_config(tomllib.loads(to_toml(config)), "its own TOML")
        assert again == config, f"{to_tree(again)} is not {to_tree(config)}"
        assert config_hash(again) == config_hash(config)
        json.dumps(to_tree(config), allow_nan=False).encode()
        return True

    return checked
