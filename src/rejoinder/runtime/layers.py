"""Dense layers in NumPy: the counterpart of `encoders.dense` in torch."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import ModelError, nearest

Array = NDArray[np.float32]


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + _erf()(x / np.float32(2**0.5))), np.float32)


@cache
def _erf() -> Callable[[Array], NDArray[Any]]:
    """Returns the error function of arrays: SciPy's, or the one of `math`, which is slower."""
    if find_spec("scipy") is not None:
        from scipy.special import erf

        return lambda x: np.asarray(erf(x))
    each = np.frompyfunc(math.erf, 1, 1)
    return lambda x: np.asarray(each(x), np.float64)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": _gelu,
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


class Layers:
    """Linear layers with an activation between them, and a residual connection if configured."""

    def __init__(
        self, name: str, config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]
    ) -> None:
        """Takes the tensors `NAME.layers.0.weight`, `NAME.layers.0.bias`, … of a model.

        Raises:
            ModelError: the activation is unknown.
        """
        activation = config["activation"]
        if activation not in _ACTIVATIONS:
            raise ModelError(f"activation {activation!r}: {nearest(activation, _ACTIVATIONS)}.")
        self.activation = _ACTIVATIONS[activation]
        numbers = range(len(config["layers"]))
        self.weights = [_float(tensors[f"{name}.layers.{number}.weight"]) for number in numbers]
        self.biases = [_float(tensors[f"{name}.layers.{number}.bias"]) for number in numbers]
        self.residual = bool(config["residual"]) and bool(self.weights)
        skip = tensors.get(f"{name}.skip.weight")
        self.skip: Array | None = None if skip is None else _float(skip)

    def __call__(self, x: Array) -> Array:
        """(N, inputs) float32 to (N, outputs) float32."""
        y = x
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            y = (self.activation(y) if number else y) @ weight.T + bias
        if not self.residual:
            return y
        return y + (x if self.skip is None else x @ self.skip.T)


def unit_rows(x: Array, present: NDArray[np.bool_]) -> Array:
    """Returns (N, D) rows scaled to length 1; rows where `present` (N,) is false become zero.

    Raises:
        ModelError: a row is not finite, which finite but huge weights can cause.
    """
    lengths = finite(np.sqrt(np.einsum("nd,nd->n", x, x)))
    factors = np.divide(present, np.maximum(lengths, np.float32(1e-12)), dtype=np.float32)
    return np.multiply(x, factors[:, None], dtype=np.float32)


def finite(values: Array) -> Array:
    """Returns `values`, which must be finite.

    Raises:
        ModelError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ModelError("the weights give embeddings that are not finite; they are too large.")
    return values


def _float(tensor: NDArray[Any]) -> Array:
    return np.ascontiguousarray(tensor, np.float32)
