"""The function from features to a score: a linear part and boosted trees, and what moved it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.errors import ModelError

LEAVES = 16
"""Most leaves of a tree: the bits of the sets of leaves."""
_BLOCK = 256
"""Rows of features that go through the trees at a time."""
_BITS = np.arange(LEAVES, dtype=np.uint16)
_LOWEST = (np.arange(1 << LEAVES, dtype=np.uint16)[:, None] >> _BITS & 1).argmax(axis=1)
"""The lowest bit of each number below 65,536."""


@dataclass(frozen=True)
class Regression:
    """score = bias + z · linear + the leaves that the features reach in each of T trees.

    z are the features less their `mean`, divided by their `spread`. The leaves of a tree are
    numbered from the left. A node with a feature above its threshold excludes the leaves on its
    left, and the first leaf that no node excludes is reached (Lucchese et al. 2015).
    """

    mean: Array
    """(F,) float32."""
    spread: Array
    """(F,) float32, above 0."""
    linear: Array
    """(F,) float32."""
    bias: Array
    """(1,) float32."""
    features: NDArray[np.int16]
    """(T, 15) int16: the feature that each node compares; 0 where there is no node."""
    thresholds: Array
    """(T, 15) float32; infinite where there is no node."""
    left: NDArray[np.uint16]
    """(T, 15) uint16: the leaves on the left of each node, a bit for each."""
    below: NDArray[np.uint16]
    """(T, 15) uint16: all leaves of each node; the first node is the root."""
    leaves: Array
    """(T, 16) float32: the values of leaves."""
    pairs: Array
    """(T, 16) float32: how many pairs of training reached each leaf, at least 1 of a tree."""

    FARTHEST: ClassVar[float] = 5.0
    """Deviations at which the linear part cuts features, so that none decides alone."""
    TYPES: ClassVar[Mapping[str, type]] = {
        "features": np.int16, "left": np.uint16, "below": np.uint16,
    }  # fmt: skip

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]], features: int, where: str) -> Self:
        """Returns the regression with those tensors.

        Raises:
            ModelError: a tensor is missing, or has another shape, type or values than it can have.
        """
        trees = tensors["leaves"].shape[:1] if "leaves" in tensors else ()
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
            ("mean", "spread", "linear"), (features,)
        )
        shapes |= dict.fromkeys(("features", "thresholds", "left", "below"), (*trees, LEAVES - 1))
        shapes |= dict.fromkeys(("leaves", "pairs"), (*trees, LEAVES)) | {"bias": (1,)}
        for name, shape in shapes.items():
            tensor, kind = tensors.get(name), np.dtype(cls.TYPES.get(name, np.float32))
            if tensor is None or tensor.shape != shape or tensor.dtype != kind:
                found = "missing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
                raise ModelError(f"{where}: {name} is {found}; expected {kind} of shape {shape}.")
            if np.isnan(tensor).any() or (name != "thresholds" and not np.isfinite(tensor).all()):
                raise ModelError(f"{where}: {name} contains values that are not finite.")
        numbers = tensors["features"]
        if not (tensors["spread"] > 0).all() or ((numbers < 0) | (numbers >= features)).any():
            raise ModelError(f"{where}: spread or features contain values that they can't have.")
        return cls(**{name: tensors[name] for name in shapes})

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays by name, as `of` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, features: Array) -> Array:
        """Returns (N,) float32 scores of (N, F) features."""
        scores = self._standardised(features) @ self.linear + self.bias
        trees = np.arange(len(self.leaves))
        for low in range(0, len(features), _BLOCK):
            reached = self._reached(self._right(features[low : low + _BLOCK]))
            scores[low : low + _BLOCK] += self.leaves[trees, reached].sum(axis=1)
        return np.asarray(scores, np.float32)

    def _standardised(self, features: Array) -> Array:
        z = (features - self.mean) / self.spread
        return np.asarray(np.clip(z, -self.FARTHEST, self.FARTHEST))

    def _right(self, features: Array) -> NDArray[np.bool_]:
        """Returns (N, T, 15) bool: whether features go right at each node."""
        return np.asarray(features[:, self.features] > self.thresholds)

    def _reached(self, right: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Returns (N, T) the leaf of each tree that is reached."""
        excluded = np.bitwise_or.reduce(right * self.left, axis=2)
        return np.asarray(_LOWEST[~excluded])

    @cached_property
    def _node_means(self) -> tuple[Array, Array, Array]:
        """(T, 15) each: the mean of the leaves below each node, and on its left and right."""
        found = []
        for sets in (self.below, self.left, self.below & ~self.left):
            inside = (sets[:, :, None] >> _BITS & 1) * self.pairs[:, None, :]
            count = np.maximum(inside.sum(axis=2), 1)
            found.append(np.asarray((inside * self.leaves[:, None, :]).sum(axis=2) / count))
        return found[0], found[1], found[2]

    @property
    def usual(self) -> float:
        """The mean score of the training pairs by the trees, and that of the mean features."""
        return float(self.bias[0] + self._node_means[0][:, 0].sum())

    def moves(self, features: Array) -> Array:
        """Returns (N, F) float32: what each feature moved the score by, from `usual`.

        They sum to the score less `usual`. A node of a tree moves it from the mean of the leaves
        below the node to that of the leaves on the side taken (Saabas 2014).
        """
        moved = self._standardised(features) * self.linear
        all_below, on_left, on_right = self._node_means
        owner = np.eye(len(self.mean), dtype=np.float32)[self.features.ravel()]
        for low in range(0, len(features), _BLOCK):
            right = self._right(features[low : low + _BLOCK])
            reached = self._reached(right).astype(np.uint16)[:, :, None]
            passed = (self.below >> reached & 1).astype(np.bool_)
            steps = np.where(right, on_right, on_left) - all_below
            steps = np.where(passed, steps, 0).reshape(len(right), -1)
            moved[low : low + _BLOCK] += steps.astype(np.float32) @ owner
        return np.asarray(moved, np.float32)
