"""The table `[encoder]` of a Transformer."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rejoinder.encoders.settings import EncoderSettings
from rejoinder.io.schema import Probability, Units


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
