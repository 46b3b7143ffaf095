"""Files of the STS tasks, made up."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

from rejoinder.datasets import semeval
from tiny_models import WORDS

Row = tuple[str, str, object]
"""Two texts and a score."""


def write_year(data: Path, rows_of: Callable[[str], Iterable[Row]], year: int = 12) -> Path:
    """Writes each subset of a year's task; `rows_of` gives its rows by its name."""
    folder = data / f"downstream/STS/STS{year}-en-test"
    folder.mkdir(parents=True)
    for subset in semeval.subset_files(f"sts{year}"):
        first, second, scores = zip(*rows_of(subset), strict=True)
        pairs = map("{}\t{}\n".format, first, second)
        (folder / f"STS.input.{subset}.txt").write_text("".join(pairs), "utf-8")
        (folder / f"STS.gs.{subset}.txt").write_text("".join(map("{}\n".format, scores)), "utf-8")
    return data


def write_benchmark(
    folder: Path, sizes: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Writes splits of the benchmark: pairs of six words share as many as their score says."""
    draw = np.random.default_rng(0)
    folder.mkdir()
    for split, size in sizes.items():
        monkeypatch.setitem(semeval.ROWS, split, size)
        rows = []
        for n in range(size):
            words = draw.permutation(WORDS[:40])
            second = [*words[: n % 6], *draw.permutation(WORDS[:40])[: 6 - n % 6]]
            rows.append(f"news\tf\t2014\t{n}\t{n % 6}\t{' '.join(words[:6])}\t{' '.join(second)}\n")
        (folder / f"sts-{split}.csv").write_text("".join(rows), "utf-8")
    return folder
