"""Trains models from pairs and configs; needs the extra `train`.

Raises:
    MissingExtraError: a package of the extra is not installed.
"""

from rejoinder.errors import require
from rejoinder.io.files.system import spin_briefly

require("train", "torch", "pydantic", "tomli_w")  # checked before any work begins
spin_briefly()
