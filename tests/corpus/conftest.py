"""Extraction in one call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rejoinder.corpus.extract import extract
from rejoinder.corpus.manifest import Manifest
from rejoinder.corpus.writer import open_pairs


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
        manifest = extract(files, out, overwrite=True, **options)
        pairs = open_pairs(out)
        return manifest, pl.concat(pairs.frame(split) for split in ("train", "dev", "test"))

    return call
