"""The record of a family of features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.inference.scoring.batch import PairBatch


@dataclass(frozen=True)
class Family:
    """Features of pairs of texts that say something alike. They ignore the order of the texts."""

    name: str
    features: tuple[str, ...]
    """Their names, each once among all families."""
    compute: Callable[[PairBatch], Sequence[Array]]
    """Returns a finite (N,) array for each feature."""

    def __call__(self, batch: PairBatch) -> Array:
        """Returns (N, F) float32 features."""
        return np.array(self.compute(batch), np.float32).reshape(-1, len(batch)).T
