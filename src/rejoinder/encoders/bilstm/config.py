"""The table `[encoder]` of a bidirectional LSTM."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rejoinder.encoders.settings import EncoderSettings
from rejoinder.io.schema import Units


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
