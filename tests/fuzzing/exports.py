"""Exports of all formats, damaged: messages, counted malformed ones, or one sentence."""

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from export_samples import write
from fuzzing.datasets import damaged_files
from rejoinder.corpus.convert import Comment, convert
from rejoinder.corpus.export_options import ExportOptions, Texts
from rejoinder.errors import RejoinderError
from rejoinder.exports import FORMATS, format_of_export

SAMPLES = {name: import_module(f"export_samples.{name}").FILES for name in FORMATS}
_VALUES = [
    None, True, 0, -1, 1e308, 10**30, "", "x", "\ud800", "\0", "1709280000", "2024-13-01",
    "<b>&#x110000;<i>", "{code}{quote}", "[](", [], [None], {}, {"id": {}}, [[]], {"": ""},
]  # fmt: skip
"""What a value of JSON becomes."""


def checker(folder: Path) -> Callable[[Random], bool]:
    """What reads one damaged export; true: all of its messages are read."""
    decoder = msgspec.json.Decoder(Comment)

    def checked(random: Random) -> bool:
        name = random.choice(list(FORMATS))
        export, out = folder / "export", folder / "out.jsonl"
        write(_damaged(SAMPLES[name], random), export)
        options = ExportOptions(
            random.choice([None, "links", "adjacent"]), include_private=random.random() < 0.5
        )
        try:
            format_of_export(export)  # whatever it finds
            converted = convert(export, FORMATS[name], options, Texts(options), out, lambda _: None)
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            str(error).encode()
            return False
        finally:
            shutil.rmtree(export, ignore_errors=True)
            shutil.rmtree(out.with_suffix(".words"), ignore_errors=True)
        comments = [decoder.decode(line) for line in out.read_bytes().splitlines()]
        counts = converted.counts
        assert counts.messages == len(comments) + sum(counts.dropped.values())
        assert all(comment.id and comment.text.strip() for comment in comments)
        return not counts.malformed

    return checked


def _damaged(files: dict[str, Any], random: Random) -> dict[str, Any]:
    trees = {name: content for name, content in files.items() if not isinstance(content, bytes)}
    if trees and random.random() < 0.6:
        name = random.choice(list(trees))
        return {**files, name: _with_other_values(trees[name], random)}
    return damaged_files({name: _bytes(content) for name, content in files.items()}, random)


def _bytes(content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def _with_other_values(content: Any, random: Random) -> Any:
    """A tree, or lines of JSON, in which some values are others; other text as it is."""
    if not isinstance(content, str):
        return json.dumps(_changed(content, random))
    lines = content.split("\n")
    row = random.randrange(len(lines))
    try:
        lines[row] = json.dumps(_changed(json.loads(lines[row]), random))
    except ValueError:
        return content
    return "\n".join(lines)


def _changed(tree: Any, random: Random) -> Any:
    """The tree with another value somewhere, or without one."""
    if not tree or not isinstance(tree, dict | list) or random.random() < 0.05:
        return random.choice(_VALUES)
    key = random.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
    if random.random() < 0.05:
        rest = dict(tree) if isinstance(tree, dict) else list(tree)
        del rest[key]
        return rest
    changed = dict(tree) if isinstance(tree, dict) else list(tree)
    changed[key] = _changed(tree[key], random)
    return changed
