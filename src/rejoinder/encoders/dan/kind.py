"""The record of the deep averaging network (Yang et al. 2018, §2.3.1)."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from rejoinder.encoders.kinds import (
    ActivationName,
    EncoderKind,
    Shapes,
    Size,
    TextSizes,
    dense_shapes,
)

BIGRAM_ROWS = "encoder.bigram_rows"
"""Maps a bigram bucket to its row of the embedding table; -1 where the bucket was never trained."""
COMBINERS: Mapping[str, float] = {"mean": 1.0, "sqrtn": 0.5, "sum": 0.0}
"""A sum of n rows is divided by n to this power."""


def _dim(encoder: Mapping[str, Any]) -> int:
    return int((encoder["layers"] or [encoder["width"]])[-1])


class _Sizes(Struct, frozen=True):
    width: Size
    layers: list[Size]
    activation: ActivationName
    combiner: Annotated[str, Meta(pattern=r"\A(mean|sqrtn|sum)\Z")]
    residual: bool


def _shapes(encoder: _Sizes, text: TextSizes) -> Shapes:
    shapes: Shapes = {"table.weight": (-1 if text.bigram_buckets else text.rows, encoder.width)}
    if text.bigram_buckets:
        shapes["bigram_rows"] = (text.bigram_buckets,)
    return shapes | dense_shapes("dnn", encoder.width, encoder.layers, residual=encoder.residual)


DAN = EncoderKind(
    name="dan",
    text="words",
    config="rejoinder.encoders.settings:DanConfig",
    module="rejoinder.encoders.dan.module:DanEncoder",
    runtime="rejoinder.encoders.dan.runtime:DanRuntime",
    table="table.weight",
    bigrams=True,
    dim=_dim,
    sizes=_Sizes,
    shapes=_shapes,
)
