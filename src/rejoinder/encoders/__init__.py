"""Ids to sentence embeddings, in torch, for training.

Raises:
    MissingExtraError: a package of the extra `train` is not installed.
"""

from rejoinder.errors import require

require("train", "torch", "pydantic")
