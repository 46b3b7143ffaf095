"""Layers of the encoders in torch, shared by the kinds.

Raises:
    MissingExtraError: a package of the extra `train` is not installed.
"""

from rejoinder.errors import require
from rejoinder.io.files.system import spin_briefly

require("train", "torch", "pydantic")
spin_briefly()
