"""`contrasts/*`: whether a paraphrase is nearer than a sentence of the same words that differs."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import polars as pl

from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval, resampled_interval
from rejoinder.evaluation.items import Items, joined
from rejoinder.evaluation.results import Scored
from rejoinder.evaluation.tasks.base import Context, Data, Family, Part
from rejoinder.io.files.hashed import sha256_of

KINDS = ("word-order", "negation", "numbers", "swaps", "names")
"""What distinguishes the sentence that differs. `swaps` are antonyms and other single words."""
_COLUMNS = ("anchor", "same", "different")


@dataclass(frozen=True)
class Contrasts:
    """The shipped items (kind, anchor, same, different), and the SHA-256 of their file.

    `same` says what the anchor says in other words. `different` has most of its words, in
    `word-order` all of them, and says something else.
    """

    frame: pl.DataFrame
    sha256: str


def read_contrasts() -> Contrasts:
    """Returns the shipped items."""
    content = files("rejoinder").joinpath("data/contrasts.jsonl").read_bytes()
    return Contrasts(pl.read_ndjson(content), sha256_of(content))


def _read(_context: Context, ids: Sequence[str]) -> Data:
    return dict.fromkeys(((task, "test") for task in ids), read_contrasts())


def _run(embedder: Embedder, context: Context, part: Part, items: Contrasts) -> Scored:
    # of all kinds, so that no score depends on which other tasks were asked for
    embedder.prepare("contrasts", [text for name in _COLUMNS for text in items.frame[name]])
    task, seed = part[0], context.seed
    kind = task.split("/")[1]
    rows = items.frame.filter(pl.col("kind") == kind)
    anchors, same, different = (rows[name].to_list() for name in _COLUMNS)
    similarity, notes = embedder.similarity([*anchors, *anchors], [*same, *different], task)
    to_same, to_different = np.split(similarity, 2)
    right = (to_same > to_different).astype(np.float64)
    return Scored(
        main="accuracy",
        scores={
            "accuracy": 100 * float(right.mean()),
            "similarity_same": float(to_same.mean()),
            "similarity_different": float(to_different.mean()),
        },
        intervals={
            "accuracy": mean_interval(right, seed, unit=100),
            "similarity_same": resampled_interval(to_same, seed),
            "similarity_different": resampled_interval(to_different, seed),
        },
        data={"name": "contrasts"},
        notes=notes,
        items=Items(
            [f"{kind}:{row}" for row in range(1, len(rows) + 1)],
            right,
            np.ones(len(right)),
            joined(anchors, same, different),
        ),
    )


FAMILIES = (Family({f"contrasts/{kind}": ("contrasts",) for kind in KINDS}, _read, _run),)
