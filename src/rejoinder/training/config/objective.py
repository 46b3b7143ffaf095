"""Config tables of objectives; importing this needs no torch."""

from rejoinder.encoders.settings import Activation
from rejoinder.io.schema import Settings, Units


class EntailmentConfig(Settings):
    """The classifier of pairs. Defaults are the paper's (§2.2 and §4.1)."""

    hidden: Units = 512
    """Units of the hidden layer."""
    activation: Activation = "tanh"
    """Activation of the hidden layer."""
