"""The record of the Transformer (Yang et al. 2018, §2.3.2)."""

from rejoinder.encoders.kinds import EncoderKind, Shapes
from rejoinder.io.formats.json_tables import Table

_MAX_BLOCKS = 1_000
"""Blocks of a model: the shapes of each are listed."""


def _shapes(encoder: Table, text: Table) -> Shapes:
    hidden, wide, dim = (encoder.size(key) for key in ("hidden", "filter", "dim"))
    heads = encoder.size("heads")
    if hidden % (2 * heads):
        raise encoder.fault("hidden", f"a multiple of 2 * heads ({2 * heads:,})")
    linear = {"projection": (dim, hidden)}
    norms = ["norm"]
    for block in range(encoder.size("layers", most=_MAX_BLOCKS)):
        linear |= {
            f"blocks.{block}.query_key_value": (3 * hidden, hidden),
            f"blocks.{block}.out": (hidden, hidden),
            f"blocks.{block}.filter_in": (wide, hidden),
            f"blocks.{block}.filter_out": (hidden, wide),
        }
        norms += [f"blocks.{block}.attention_norm", f"blocks.{block}.filter_norm"]
    shapes: Shapes = {"embedding.weight": (text.size("subwords"), hidden)}
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}
    return shapes


TRANSFORMER = EncoderKind(
    name="transformer",
    text="subwords",
    config="rejoinder.encoders.transformer.config:TransformerConfig",
    module="rejoinder.encoders.transformer.module:TransformerEncoder",
    embedding="embedding.weight",
    shapes=_shapes,
)
