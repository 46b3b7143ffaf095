"""The record of the Transformer (Yang et al. 2018, §2.3.2)."""

from typing import Annotated

from msgspec import Meta, Struct

from rejoinder.encoders.kinds import EncoderKind, Shapes, Size, TextSizes


class _Sizes(Struct, frozen=True):
    hidden: Size
    filter: Size
    dim: Size
    heads: Size
    layers: Annotated[int, Meta(ge=1, le=1_000)]  # the shapes of each block are listed


def _shapes(encoder: _Sizes, text: TextSizes) -> Shapes:
    hidden, wide, dim = encoder.hidden, encoder.filter, encoder.dim
    if hidden % (2 * encoder.heads):
        raise ValueError(
            f"encoder.hidden is {hidden}; a multiple of 2 * heads ({2 * encoder.heads}) is needed"
        )
    linear = {"projection": (dim, hidden)}
    norms = ["norm"]
    for block in range(encoder.layers):
        linear |= {
            f"blocks.{block}.query_key_value": (3 * hidden, hidden),
            f"blocks.{block}.out": (hidden, hidden),
            f"blocks.{block}.filter_in": (wide, hidden),
            f"blocks.{block}.filter_out": (hidden, wide),
        }
        norms += [f"blocks.{block}.attention_norm", f"blocks.{block}.filter_norm"]
    shapes: Shapes = {"embedding.weight": (text.rows, hidden)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}
    return shapes


TRANSFORMER = EncoderKind(
    name="transformer",
    text="subwords",
    config="rejoinder.encoders.settings:TransformerConfig",
    module="rejoinder.encoders.transformer.module:TransformerEncoder",
    embedding="embedding.weight",
    sizes=_Sizes,
    shapes=_shapes,
)
