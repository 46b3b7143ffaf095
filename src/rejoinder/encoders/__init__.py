"""Encoders in torch: token ids to sentence embeddings.

Raises:
    MissingExtraError: a package of the extra `train` is not installed.
"""

from rejoinder.errors import require

require("train", "torch", "pydantic")
