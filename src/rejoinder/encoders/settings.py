"""What a config says of encoders: one table for each kind, with its sizes; no torch."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rejoinder.schema.base import Layers, Probability, Settings, Units, tagged

Activation = Literal["gelu", "none", "relu", "tanh"]
"""Both `encoders.heads` and the runtime without torch have them; a test holds the three equal."""
Combiner = Literal["sqrtn", "mean", "sum"]


class EncoderSettings(Settings):
    """What every kind of encoder says of itself beside its sizes."""

    kind: str
    reads: ClassVar[Literal["words", "subwords"]] = "words"
    """The kind of text that it reads."""
    reads_bigrams: ClassVar[bool] = False
    has_table: ClassVar[bool] = True
    """Whether its rows are a `SparseTable`, which `optimizer.table` moves."""


class DanConfig(EncoderSettings):
    """A deep averaging network: by default the paper's (§4.1); where it is silent, ours."""

    reads_bigrams: ClassVar[bool] = True

    kind: Literal["dan"] = "dan"
    width: Units = Field(default=300, description="Width of the rows of words and bigrams.")
    layers: Layers = Field(
        default=(300, 300, 500),
        description="Units of the dense layers; the last is the embedding. "
        "Empty: the pooled sum is the embedding.",
    )
    activation: Activation = Field(
        default="tanh", description="Between layers; none after the last."
    )
    residual: bool = Field(
        default=False,
        description="Add the pooled sum to the output of the layers, through a linear map where "
        "the widths differ.",
    )
    combiner: Combiner = Field(
        default="sqrtn",
        description="What the sum of n rows is divided by: the root of n, n, or 1.",
    )

    @property
    def dim(self) -> int:
        """Width of the embedding."""
        return self.layers[-1] if self.layers else self.width


class TransformerConfig(EncoderSettings):
    """A Transformer; the defaults are the paper's."""

    reads: ClassVar[Literal["words", "subwords"]] = "subwords"
    has_table: ClassVar[bool] = False

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(default=6, ge=1, le=256, description="Blocks.")
    heads: int = Field(default=8, ge=1, le=1_024, description="Heads of attention of a block.")
    hidden: Units = Field(
        default=512, description="Width of a subword's state; a multiple of 2 * heads."
    )
    filter: int = Field(
        default=2_048,
        ge=1,
        le=65_536,
        description="Units between the two layers of a block's feed-forward network.",
    )
    dim: Units = Field(default=500, description="Width of the embedding.")
    dropout: Probability = Field(
        default=0.0, description="Share of units dropped after each block, in training."
    )

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden is {self.hidden}; allowed: a multiple of 2 * heads = {2 * self.heads}"
            )
        return self


class BilstmConfig(EncoderSettings):
    """A bidirectional LSTM with max pooling; the defaults are InferSent's."""

    kind: Literal["bilstm"] = "bilstm"
    width: Units = Field(default=300, description="Width of the rows of words.")
    hidden: Units = Field(default=2_048, description="Units of each of the two directions.")
    dim: int = Field(
        default=0,
        ge=0,
        le=32_768,
        description="Width of the embedding. 0 becomes 2 * hidden: the pooled states themselves, "
        "as published; any other width is a linear map of them.",
    )
    max_tokens: int = Field(
        default=128,
        ge=1,
        le=8_192,
        description="Known words of a sentence that are read; what is beyond is cut.",
    )

    @model_validator(mode="after")
    def _pooled_states_by_default(self) -> Self:
        object.__setattr__(self, "dim", self.dim or 2 * self.hidden)
        return self

    @property
    def projected(self) -> bool:
        """Whether a linear map stands between the pooled states and the embedding."""
        return self.dim != 2 * self.hidden


ENCODERS: tuple[type[EncoderSettings], ...] = (DanConfig, TransformerConfig, BilstmConfig)
"""The kinds that a config's table `encoder` may be of."""

if TYPE_CHECKING:
    Encoder = DanConfig | TransformerConfig | BilstmConfig
else:  # made from the list of kinds, which type checkers can't follow
    Encoder: Any = tagged(ENCODERS, "kind", default="dan")
