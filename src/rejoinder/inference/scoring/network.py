"""The function from features to a score: one hidden layer, and what moved the score."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from rejoinder.encoders.layers import Array
from rejoinder.errors import ModelError


@dataclass(frozen=True)
class Network:
    """score = bias + relu(z W + b) · output, where z are standardised features."""

    mean: Array
    """(F,) float32: the mean of each feature in training, where z is 0."""
    spread: Array
    """(F,) float32: its standard deviation, above 0."""
    weight: Array
    """(F, H) float32: W."""
    hidden_bias: Array
    """(H,) float32: b."""
    output: Array
    """(H,) float32."""
    bias: Array
    """(1,) float32."""

    FARTHEST: ClassVar[float] = 5.0
    """Standard deviations from the mean at which features are cut, so that none decides alone."""

    @classmethod
    def of(cls, tensors: Mapping[str, Array], features: int, where: str) -> Self:
        """Returns the network with those tensors.

        Raises:
            ModelError: a tensor is missing, or has another shape, type or values than it can have.
        """
        hidden = tensors["output"].shape[:1] if "output" in tensors else ()
        shapes = dict.fromkeys(("mean", "spread"), (features,))
        shapes |= {"weight": (features, *hidden), "hidden_bias": hidden, "output": hidden}
        shapes["bias"] = (1,)
        for name, shape in shapes.items():
            tensor = tensors.get(name)
            if tensor is None or tensor.shape != shape or tensor.dtype != np.float32:
                found = "missing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
                raise ModelError(f"{where}: {name} is {found}; expected float32 of shape {shape}.")
            if not np.isfinite(tensor).all():
                raise ModelError(f"{where}: {name} contains values that are not finite.")
        if not (tensors["spread"] > 0).all():
            raise ModelError(f"{where}: spread contains values that are not above 0.")
        return cls(**{name: tensors[name] for name in shapes})

    def tensors(self) -> dict[str, Array]:
        """Returns the arrays by name, as `of` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, features: Array) -> Array:
        """Returns (N,) float32 scores of (N, F) features."""
        inputs = self._standardised(features) @ self.weight + self.hidden_bias
        return np.asarray(np.maximum(inputs, 0) @ self.output + self.bias, np.float32)

    def _standardised(self, features: Array) -> Array:
        z = (features - self.mean) / self.spread
        return np.asarray(np.clip(z, -self.FARTHEST, self.FARTHEST))

    @property
    def usual(self) -> float:
        """The score of the mean features, from which `moves` start."""
        return float(np.maximum(self.hidden_bias, 0) @ self.output + self.bias[0])

    def moves(self, features: Array) -> Array:
        """Returns (N, F) float32: what each feature moved the score by, from `usual`.

        They sum to the score less `usual`. They are integrated gradients on the straight way from
        the mean (Sundararajan et al. 2017), which are exact for one layer of relu.
        """
        z = self._standardised(features)
        change = z @ self.weight
        before, after = np.maximum(self.hidden_bias, 0), np.maximum(change + self.hidden_bias, 0)
        open_for = np.divide(after - before, change, out=np.zeros_like(change), where=change != 0)
        return np.asarray(z * ((open_for * self.output) @ self.weight.T))
