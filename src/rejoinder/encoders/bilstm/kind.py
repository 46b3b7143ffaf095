"""The record of the bidirectional LSTM with max pooling (Conneau et al. 2017)."""

from rejoinder.encoders.kinds import EncoderKind, Shapes, word_rows
from rejoinder.errors import ModelError
from rejoinder.io.formats.json_tables import Table


def _shapes(encoder: Table, text: Table) -> Shapes:
    width, hidden, dim = (encoder.size(key) for key in ("width", "hidden", "dim"))
    encoder.size("max_tokens")
    if text.size("bigram_buckets", 0):
        raise ModelError(
            f"{text.where}: text.bigram_buckets must be 0; a bilstm reads words alone."
        )
    shapes: Shapes = {"table.weight": (word_rows(text), width)}
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
    config="rejoinder.encoders.bilstm.config:BilstmConfig",
    module="rejoinder.encoders.bilstm.module:BilstmEncoder",
    table="table.weight",
    shapes=_shapes,
)
