"""Model folders that somebody edited, cut or put together wrongly, hashes mended and all."""

import copy
import hashlib
import json
from collections.abc import Mapping
from random import Random
from typing import Any

from rejoinder.io.files.hashed import sealed

Files = dict[str, bytes]
"""The files of a model folder by name."""

CONFIG, WEIGHTS = "config.json", "weights.safetensors"

_AWKWARD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 5, 6, 7, 64, 0.0, 1.0, 2.5, -0.5, 1e308, 2**31 - 1, 2**31,
    2**63, 10**40, float("nan"), float("inf"), "", "5", "dan", "bilstm", "transformer", "words",
    "subwords", "tanh", "relu", "sum", "\ud800", "\0", "../config.json", "weights.safetensors",
    "é" * 300, [], [[]], {},
    [0], [5], [3], [7, 5], [4, 6], [-1], [True], ["5"], [2**70], [None], {"kind": "dan"}, {"": {}},
    [1.5], [5] * 40,
)  # fmt: skip
_TYPES = ("F16", "F32", "F64", "BF16", "I32", "I64", "U8", "BOOL", "F8_E4M3", "X", 5, None)
_LINES = ("", "you", "How", "a b", "\r", "\x00", "\u2028", "\ufeff", "x" * 10_000, "é", "e\u0301")
_BYTES = (b"", b"\x00", b"\xff", b"\xff\xff\xff\xff", b"{", b"}", b'"', b"0", b"9", b"\n")


def mutated_model(random: Random, files: Mapping[str, bytes]) -> Files:
    """The files of a model with one to three faults; most are signed anew, as if written so."""
    changed = dict(files)
    signed = random.random() < 0.9
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice((CONFIG, CONFIG, *sorted(changed)))
        changed[name] = _mutated(random, name, changed[name])
        if signed and name != CONFIG:
            changed = _with_facts(changed, name)
    return _resealed(changed) if signed else changed


def mutated_tree(random: Random, tree: Any) -> Any:
    """A tree of JSON values with one node removed, replaced, added, nested or exchanged."""
    tree = copy.deepcopy(tree)
    tables = [node for node in _nodes(tree) if isinstance(node, dict | list) and node]
    if not tables:
        return random.choice(_AWKWARD)
    node = random.choice(tables)
    key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
    value = copy.deepcopy(random.choice(_AWKWARD))
    match random.randrange(9):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[random.choice(("extra", "kind", "layers", "sha256", "", "\ud800", "5"))] = value
        case 1:
            node.append(value)
        case 2:
            node[key] = [node[key]]
        case 3 if isinstance(node[key], int | float):
            node[key] = node[key] + random.choice((-1, 1, 0.5, 2**31))
        case 4 if node[key] is not None:
            node[key] = type(node[key])()  # an empty table, an empty list, no words
        case 5:
            node[key] = copy.deepcopy(random.choice(list(_nodes(tree))))
        case _:
            node[key] = value
    return tree


def mutated_bytes(random: Random, content: bytes) -> bytes:
    """Bytes with a piece cut, doubled, replaced or put in, or a few bits turned."""
    low = random.randrange(len(content) + 1)
    high = min(low + random.choice((0, 1, 2, 8, 100)), len(content))
    match random.randrange(6):
        case 0:
            return content[:low]
        case 1:
            return content[:low] + content[high:]
        case 2:
            return content[:high] + content[low:]
        case 3:
            return content[:low] + random.choice(_BYTES) + content[high:]
        case 4:
            return random.choice(_BYTES)
    turned = bytearray(content)
    for _ in range(random.choice((1, 3, 50)) if content else 0):
        turned[random.randrange(len(turned))] ^= 1 << random.randrange(8)
    return bytes(turned)


def mutated_tensors(random: Random, content: bytes) -> bytes:
    """A safetensors file whose header (names, types, shapes, metadata) is another."""
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
    except ValueError:
        return mutated_bytes(random, content)
    tables = header.items() if isinstance(header, dict) else ()
    tensors = [name for name, facts in tables if isinstance(facts, dict) and "dtype" in facts]
    kind = random.randrange(4)
    if kind == 0 and tensors:
        header[random.choice(tensors)]["dtype"] = random.choice(_TYPES)
    elif kind == 1 and isinstance(header, dict) and isinstance(header.get("__metadata__"), dict):
        header["__metadata__"] = {
            name: _mutated_json(random, value) for name, value in header["__metadata__"].items()
        }
    else:
        header = mutated_tree(random, header)
    said = json.dumps(header).encode()
    said += b" " * (-len(said) % 8)
    return len(said).to_bytes(8, "little") + said + content[8 + size :]


def _mutated_json(random: Random, value: Any) -> Any:
    """JSON as a string with its tree changed; what is none comes back."""
    try:
        return json.dumps(mutated_tree(random, json.loads(value)))
    except (TypeError, ValueError, RecursionError):
        return value


def mutated_lines(random: Random, content: bytes) -> bytes:
    """A list of words with a line removed, added, doubled or replaced."""
    lines = content.decode("utf-8", "replace").split("\n")
    place = random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, random.choice(_LINES))
        case 2:
            lines.insert(place, lines[random.randrange(len(lines))])
        case _:
            lines[place] = random.choice(_LINES)
    return "\n".join(lines).encode()


def _mutated(random: Random, name: str, content: bytes) -> bytes:
    if random.random() < 0.15 or not content:
        return mutated_bytes(random, content)
    if name.endswith(".safetensors"):
        chosen = mutated_tensors if random.random() < 0.7 else mutated_bytes
        return chosen(random, content)
    if name.endswith(".json"):
        if random.random() < 0.01:
            return b"[" * 200_000
        try:
            tree = json.loads(content)
        except (ValueError, RecursionError):
            return mutated_bytes(random, content)
        return json.dumps(mutated_tree(random, tree)).encode()
    return mutated_lines(random, content)


def _with_facts(files: Files, name: str) -> Files:
    """The files with the hash of one of them in the config mended, where the config has any."""
    config = _config(files)
    if not isinstance(config, dict) or not isinstance(config.get("files"), dict):
        return files
    facts = {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}
    if name in config["files"]:
        config["files"][name] = facts
    return {**files, CONFIG: json.dumps(config).encode()}


def _resealed(files: Files) -> Files:
    """The files with a config that carries its own hash, where it is a table still."""
    config = _config(files)
    if not isinstance(config, dict):
        return files
    config.pop("sha256", None)
    return {**files, CONFIG: json.dumps(sealed(config)).encode()}


def _config(files: Files) -> Any:
    try:
        return json.loads(files[CONFIG])
    except (ValueError, RecursionError):
        return None


def _nodes(tree: Any) -> list[Any]:
    """All values of a tree, the tree included."""
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [tree, *(node for child in children for node in _nodes(child))]
