"""The function from features to a score: a linear part and trees, and what moved it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array
from rejoinder.errors import ModelError
from rejoinder.measures import Indices

_BLOCK = 256
"""Rows of features that the trees take at a time."""
Places = NDArray[np.int32]


@dataclass(frozen=True)
class Regression:
    """score = bias + z · linear + the values of the leaves that the features reach in T trees.

    z are the features less their `mean`, divided by their `spread`. All trees together have M
    nodes. Features above the threshold of a node go to its right child, which follows the left.
    """

    mean: Array
    """(F,) float32."""
    spread: Array
    """(F,) float32, above 0."""
    linear: Array
    """(F,) float32."""
    bias: Array
    """(1,) float32."""
    roots: Places
    """(T,) int32: the first node of each tree."""
    features: NDArray[np.int16]
    """(M,) int16: the feature that a node compares; 0 for a leaf."""
    thresholds: Array
    """(M,) float32; infinite for a leaf."""
    children: Places
    """(M,) int32: the left child of a node, which is after the node; a leaf has its own place."""
    values: Array
    """(M,) float32: the mean of what the training pairs of a node reach in its tree."""

    FARTHEST: ClassVar[float] = 5.0
    """Deviations at which the linear part cuts features, so that none decides alone."""
    TYPES: ClassVar[Mapping[str, type]] = {
        "features": np.int16, "roots": np.int32, "children": np.int32,
    }  # fmt: skip

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]], features: int, where: str) -> Self:
        """Returns the regression with those tensors.

        Raises:
            ModelError: a tensor is missing, or has another shape, type or values than it can have.
        """
        trees, nodes = (
            tensors[name].shape[:1] if name in tensors else () for name in ("roots", "values")
        )
        shapes: dict[str, tuple[int, ...]] = {"bias": (1,), "roots": trees}
        shapes |= dict.fromkeys(("mean", "spread", "linear"), (features,))
        shapes |= dict.fromkeys(("features", "thresholds", "children", "values"), nodes)
        for name, shape in shapes.items():
            tensor, kind = tensors.get(name), np.dtype(cls.TYPES.get(name, np.float32))
            if tensor is None or tensor.shape != shape or tensor.dtype != kind or len(shape) != 1:
                found = "missing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
                raise ModelError(f"{where}: {name} is {found}; expected {kind} of shape {shape}.")
            if np.isnan(tensor).any() or (name != "thresholds" and not np.isfinite(tensor).all()):
                raise ModelError(f"{where}: {name} contains values that are not finite.")
        regression = cls(**{name: tensors[name] for name in shapes})
        if not regression._is_possible():
            raise ModelError(f"{where}: a tensor contains values that it can't have.")
        return regression

    def _is_possible(self) -> bool:
        count, places = len(self.values), np.arange(len(self.values))
        inner = self.children != places
        return bool(
            (self.spread > 0).all()
            and ((self.features >= 0) & (self.features < len(self.mean))).all()
            and ((self.roots >= 0) & (self.roots < count)).all()
            and ((self.children[inner] > places[inner]) & (self.children[inner] < count - 1)).all()
            and np.isposinf(self.thresholds[~inner]).all()
        )

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays by name, as `of` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, features: Array) -> Array:
        """Returns (N,) float32 scores of (N, F) features."""
        scores = self._standardised(features) @ self.linear + self.bias
        for low in range(0, len(features), _BLOCK):
            nodes = self._places[0][None]
            for _, nodes in self._steps(features[low : low + _BLOCK]):  # noqa: B007
                pass
            scores[low : low + _BLOCK] += self.values[nodes].sum(axis=1)
        return np.asarray(scores, np.float32)

    def _standardised(self, features: Array) -> Array:
        z = (features - self.mean) / self.spread
        return np.asarray(np.clip(z, -self.FARTHEST, self.FARTHEST))

    @cached_property
    def _places(self) -> tuple[Indices, Indices, Indices]:
        """The roots, features and children of nodes as NumPy takes them without a conversion."""
        roots, features, children = (
            each.astype(np.int64) for each in (self.roots, self.features, self.children)
        )
        return roots, features, children

    def _steps(self, features: Array) -> Iterator[tuple[Indices, Indices]]:
        """Gives (N, T) the nodes that rows of features are at, and the next ones, to the leaves."""
        roots, compared, children = self._places
        values, width = features.ravel(), features.shape[1]
        begins = np.arange(0, len(features) * width, width)[:, None]
        nodes = np.broadcast_to(roots, (len(features), len(roots)))
        while True:
            above = values.take(begins + compared.take(nodes)) > self.thresholds.take(nodes)
            reached = children.take(nodes) + above
            if (reached == nodes).all():
                return
            yield nodes, reached
            nodes = reached

    @property
    def usual(self) -> float:
        """The mean score of the training pairs by the trees, and that of the mean features."""
        return float(self.bias[0] + self.values[self.roots].sum())

    def moves(self, features: Array) -> Array:
        """Returns (N, F) float32: what each feature moved the score by, from `usual`.

        They sum to the score less `usual`. A node of a tree moves it from the mean of its training
        pairs to that of the child that is taken (Saabas 2014).
        """
        moved = self._standardised(features) * self.linear
        width = len(self.mean)
        for low in range(0, len(features), _BLOCK):
            part = moved[low : low + _BLOCK]
            for nodes, reached in self._steps(features[low : low + _BLOCK]):
                owner = np.arange(len(part))[:, None] * width + self.features[nodes]
                steps = self.values[reached] - self.values[nodes]
                sums = np.bincount(owner.ravel(), steps.ravel(), part.size)
                part += sums.reshape(part.shape).astype(np.float32)
        return np.asarray(moved, np.float32)
