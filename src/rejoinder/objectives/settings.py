"""What a config says of objectives beside its tasks; no torch."""

from pydantic import Field

from rejoinder.encoders.settings import Activation
from rejoinder.schema.base import Settings, Units


class EntailmentConfig(Settings):
    """The classifier of pairs: by default the paper's (§2.2 and §4.1)."""

    hidden: Units = Field(default=512, description="Units of its hidden layer.")
    activation: Activation = Field(default="tanh", description="Behind the hidden layer.")
