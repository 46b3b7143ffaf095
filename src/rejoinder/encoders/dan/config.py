"""The table `[encoder]` of a deep averaging network."""

from typing import Literal

from rejoinder.encoders.settings import Activation, EncoderSettings
from rejoinder.io.schema import Layers, Units

Combiner = Literal["sqrtn", "mean", "sum"]


class DanConfig(EncoderSettings):
    """A deep averaging network. Defaults are the paper's (§4.1), and ours where it is silent."""

    kind: Literal["dan"] = "dan"
    width: Units = 300
    """Width of the rows of words and bigrams."""
    layers: Layers = (300, 300, 500)
    """Units of the dense layers; the last is the embedding. Empty: the pooled sum is the
    embedding."""
    activation: Activation = "tanh"
    """Activation between layers; there is none after the last."""
    residual: bool = False
    """Add the pooled sum to the output of the layers, through a linear map where the widths
    differ."""
    combiner: Combiner = "sqrtn"
    """Divides the sum of n rows by the root of n, by n, or by 1."""

    @property
    def dim(self) -> int:
        """Embedding dimension."""
        return self.layers[-1] if self.layers else self.width
