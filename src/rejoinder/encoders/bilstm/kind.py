"""The record of the bidirectional LSTM with max pooling (Conneau et al. 2017)."""

from msgspec import Struct

from rejoinder.encoders.kinds import EncoderKind, Shapes, Size, TextSizes


class _Sizes(Struct, frozen=True):
    width: Size
    hidden: Size
    dim: Size
    max_tokens: Size


def _shapes(encoder: _Sizes, text: TextSizes) -> Shapes:
    width, hidden, dim = encoder.width, encoder.hidden, encoder.dim
    shapes: Shapes = {"table.weight": (text.rows, width)}
    for direction in ("forwards", "backwards"):
        shapes |= {
            f"{direction}.weight_ih_l0": (4 * hidden, width),
            f"{direction}.weight_hh_l0": (4 * hidden, hidden),
            f"{direction}.bias_ih_l0": (4 * hidden,),
            f"{direction}.bias_hh_l0": (4 * hidden,),
        }
    if dim != 2 * hidden:
        shapes |= {"projection.weight": (dim, 2 * hidden), "projection.bias": (dim,)}
    return shapes


BILSTM = EncoderKind(
    name="bilstm",
    text="words",
    config="rejoinder.encoders.settings:BilstmConfig",
    module="rejoinder.encoders.bilstm.module:BilstmEncoder",
    table="table.weight",
    sizes=_Sizes,
    shapes=_shapes,
)
