"""Small dumps, and extraction in one call."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rejoinder.corpus.extract import ExtractOptions, extract
from rejoinder.corpus.manifest import Manifest
from rejoinder.corpus.shards import open_pairs

LONG = "This is a perfectly ordinary comment, number "


def comment(name: str, body: str, parent: str = "t3_p", **fields: Any) -> dict[str, Any]:
    """A comment as the public dumps have it."""
    return {
        "id": name,
        "parent_id": parent,
        "link_id": "t3_p",
        "author": "somebody",
        "subreddit": "tests",
        "created_utc": 1_600_000_000,
        "body": body,
        **fields,
    }


def lines(*comments: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in comments)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[Manifest, pl.DataFrame]]:
    """Write a dump, extract it; its manifest and all its pairs, in the order written."""

    def call(
        content: bytes | Path | list[Path], name: str = "dump.jsonl", **options: Any
    ) -> tuple[Manifest, pl.DataFrame]:
        if isinstance(content, bytes):
            path = tmp_path / name
            path.write_bytes(content)
            content = path
        files = content if isinstance(content, list) else [content]
        out = tmp_path / "pairs"
        manifest = extract(
            files, out, ExtractOptions(overwrite=True, **options), lambda _stage, _done: None
        )
        pairs = open_pairs(out, verify=True)
        return manifest, pl.concat(pairs.frame(split) for split in ("train", "dev", "test"))

    return call
