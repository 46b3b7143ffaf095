"""The table `[encoder]` of a config, as far as all kinds share it; it needs no torch."""

from typing import TYPE_CHECKING, Literal

from rejoinder.io.schema import Settings

Activation = Literal["gelu", "none", "relu", "tanh"]
"""Implemented by `encoders.nn.dense` and `encoders.layers`; a test keeps the lists equal."""


class EncoderSettings(Settings):
    """Base class of encoder configs: a subclass needs `kind`, and `dim` as a field or property."""

    kind: str

    if TYPE_CHECKING:  # a field or a property of each kind

        @property
        def dim(self) -> int:
            """Embedding dimension."""
