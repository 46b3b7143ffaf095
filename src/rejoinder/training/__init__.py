"""Pairs and configs to trained models; needs the extra `train`.

Raises:
    MissingExtraError: a package of the extra is not installed.
"""

from rejoinder.errors import require
from rejoinder.io.files.system import spin_briefly

require("train", "torch", "pydantic", "tomli_w")  # asked for before any work begins
spin_briefly()
