"""The table `[encoder]` of a config, by kind; importing this needs no torch."""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from rejoinder.io.schema import Layers, Probability, Settings, Units

Activation = Literal["gelu", "none", "relu", "tanh"]
"""Implemented by `encoders.nn.layers` and `encoders.layers`; a test keeps the lists equal."""
Combiner = Literal["sqrtn", "mean", "sum"]


class EncoderSettings(Settings):
    """Base class of encoder configs: a subclass needs `kind`, and `dim` as a field or property."""

    kind: str

    if TYPE_CHECKING:  # a field or a property of each kind

        @property
        def dim(self) -> int:
            """Embedding dimension."""


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


class BilstmConfig(EncoderSettings):
    """A bidirectional LSTM with max pooling. Defaults are InferSent's."""

    kind: Literal["bilstm"] = "bilstm"
    width: Units = 300
    """Width of the rows of words."""
    hidden: Units = 2_048
    """Units of each direction."""
    dim: int = Field(default=0, ge=0, le=32_768)
    """Embedding dimension. 0 means 2 * hidden, the pooled states themselves, as published; any
    other number adds a linear map of them."""
    max_tokens: int = Field(default=128, ge=1, le=8_192)
    """Known words read per sentence; the rest is cut off."""

    @model_validator(mode="after")
    def _pooled_states_by_default(self) -> Self:
        object.__setattr__(self, "dim", self.dim or 2 * self.hidden)
        return self

    @property
    def projected(self) -> bool:
        """Whether a linear map follows the pooled states."""
        return self.dim != 2 * self.hidden


class TransformerConfig(EncoderSettings):
    """A Transformer. Defaults are the paper's."""

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(default=6, ge=1, le=256)
    """Blocks."""
    heads: int = Field(default=8, ge=1, le=1_024)
    """Attention heads per block."""
    hidden: Units = 512
    """Width of a subword's hidden state; a multiple of 2 * heads."""
    filter: int = Field(default=2_048, ge=1, le=65_536)
    """Hidden units of a block's feed-forward network."""
    dim: Units = 500
    """Embedding dimension."""
    dropout: Probability = 0.0
    """Fraction of units dropped after each block during training."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden is {self.hidden}; allowed: a multiple of 2 * heads = {2 * self.heads}"
            )
        return self
