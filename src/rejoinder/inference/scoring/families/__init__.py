"""The families of features that a scorer is fitted on, by name."""

from collections.abc import Sequence

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch
from rejoinder.inference.scoring.families.base import Family
from rejoinder.registry import Registry

FAMILIES: Registry[Family] = Registry(
    "family of features",
    {
        "embeddings": f"{__name__}.embeddings:EMBEDDINGS",
        "alignment": f"{__name__}.alignment:ALIGNMENT",
        "meanings": f"{__name__}.meanings:MEANINGS",
        "remainders": f"{__name__}.remainders:REMAINDERS",
        "ends": f"{__name__}.ends:ENDS",
        "edits": f"{__name__}.edits:EDITS",
        "lengths": f"{__name__}.lengths:LENGTHS",
        "numbers": f"{__name__}.numbers:NUMBERS",
        "names": f"{__name__}.names:NAMES",
        "negation": f"{__name__}.negation:NEGATION",
    },
)
"""A new family needs a line here, or a call of `FAMILIES.register`."""


def features_of(batch: PairBatch, families: Sequence[Family]) -> Array:
    """Returns (N, F) float32, the features of all families, one family after the other."""
    return np.concatenate([family(batch) for family in families], axis=1)
