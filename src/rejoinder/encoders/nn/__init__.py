"""Layers of the encoders in torch, shared by the kinds.

Raises:
    MissingExtraError: a package of the extra `train` is not installed.
"""

from rejoinder.errors import require

require("train", "torch", "pydantic")
