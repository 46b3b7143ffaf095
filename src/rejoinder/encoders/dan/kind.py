"""The record of the deep averaging network (Yang et al. 2018, §2.3.1)."""

from collections.abc import Mapping
from typing import Any

from rejoinder.encoders.kinds import ACTIVATIONS, EncoderKind, Shapes, dense_shapes, word_rows
from rejoinder.io.formats.json_tables import Table

BIGRAM_ROWS = "encoder.bigram_rows"
"""Maps a bigram bucket to its row of the embedding table; -1 where the bucket was never trained."""
COMBINERS: Mapping[str, float] = {"mean": 1.0, "sqrtn": 0.5, "sum": 0.0}
"""The power of n, the number of rows summed, that the sum is divided by."""


def _dim(encoder: Mapping[str, Any]) -> int:
    return int((encoder["layers"] or [encoder["width"]])[-1])


def _shapes(encoder: Table, text: Table) -> Shapes:
    width, layers = encoder.size("width"), encoder.sizes("layers")
    encoder.word("activation", ACTIVATIONS)
    encoder.word("combiner", sorted(COMBINERS))
    rows, buckets = word_rows(text), text.size("bigram_buckets", 0)
    shapes: Shapes = {"table.weight": (-1 if buckets else rows, width)}
    if buckets:
        shapes["bigram_rows"] = (buckets,)
    residual = encoder.flag("residual")
    return shapes | dense_shapes("dnn", width, layers, residual=residual)


DAN = EncoderKind(
    name="dan",
    text="words",
    config="rejoinder.encoders.dan.config:DanConfig",
    module="rejoinder.encoders.dan.module:DanEncoder",
    runtime="rejoinder.encoders.dan.runtime:DanRuntime",
    table="table.weight",
    bigrams=True,
    dim=_dim,
    shapes=_shapes,
)
