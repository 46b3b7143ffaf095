"""Dense layers in NumPy, as `encoders.heads` has them in torch."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from rejoinder.errors import ModelError, nearest

Array = NDArray[np.float32]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: (0.5 * x * (1.0 + erf(x / np.float32(2**0.5)))).astype(np.float32),
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


class Layers:
    """Linear layers with an activation between them; with `residual` their input is added."""

    def __init__(
        self, name: str, config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]
    ) -> None:
        """The layers `name.0`, `name.1`, … of a model.

        Raises:
            ModelError: an unknown activation.
        """
        activation = config["activation"]
        if activation not in _ACTIVATIONS:
            raise ModelError(f"activation {activation!r}: {nearest(activation, _ACTIVATIONS)}.")
        self.activation = _ACTIVATIONS[activation]
        count = len(config["layers"])
        self.weights: list[Array] = [_float(tensors[f"{name}.{i}.weight"]) for i in range(count)]
        self.biases: list[Array] = [_float(tensors[f"{name}.{i}.bias"]) for i in range(count)]
        self.residual = bool(config["residual"]) and count > 0
        skip = tensors.get("skip.weight") if name == "dan" else None
        self.skip: Array | None = None if skip is None else _float(skip)

    def __call__(self, x: Array) -> Array:
        """(N, width) float32 to (N, dim) float32."""
        y = x
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            y = (self.activation(y) if number else y) @ weight.T + bias
        if not self.residual:
            return y
        return y + (x if self.skip is None else x @ self.skip.T)


def unit_rows(x: Array, present: NDArray[np.bool_]) -> Array:
    """(N, D) rows of length 1; those where `present` (N,) is false are zero.

    Raises:
        ModelError: a row is not finite, which finite but huge weights can lead to.
    """
    lengths = np.sqrt(np.einsum("nd,nd->n", x, x))
    if not np.isfinite(lengths).all():
        raise ModelError("the weights give embeddings that are not finite; they are too large.")
    factors: Array = present.astype(np.float32) / np.maximum(lengths, np.float32(1e-12))
    return np.multiply(x, factors[:, None], dtype=np.float32)


def _float(tensor: NDArray[Any]) -> Array:
    return np.ascontiguousarray(tensor, np.float32)
