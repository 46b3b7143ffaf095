"""Pairs and configs to trained models; needs the extra `train`.

Raises:
    MissingExtraError: a package of the extra is not installed.
"""

from importlib.util import find_spec

from rejoinder.errors import MissingExtraError

for _package in ("torch", "pydantic", "tensorboard"):  # each asked for before any work begins
    if find_spec(_package) is None:
        raise MissingExtraError(_package, "train")
