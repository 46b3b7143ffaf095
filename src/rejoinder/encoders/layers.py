"""Encoders without torch: sums of rows, dense layers, and 8-bit tables with one scale per row.

`encoders.nn` is the counterpart in torch.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders import BIGRAM_ROWS, COMBINERS
from rejoinder.errors import ModelError
from rejoinder.io.files.system import default_workers
from rejoinder.registry import kernel
from rejoinder.text.ragged import Ragged

if TYPE_CHECKING:
    from rejoinder.models.folder import ModelContents


Array = NDArray[np.float32]

_NOT_FINITE = "an embedding is not finite: the weights of the model are too large."


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + _erf()(x / np.float32(2**0.5))), np.float32)


@cache
def _erf() -> Callable[[Array], NDArray[Any]]:
    """Returns the error function for arrays: SciPy's if it is installed, else `math`'s, slower."""
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
        """Takes the tensors `NAME.layers.0.weight`, `NAME.layers.0.bias`, … of a model."""
        self.activation = _ACTIVATIONS[config["activation"]]
        each = [f"{name}.layers.{number}" for number in range(len(config["layers"]))]
        self.weights = [
            (_transposed(tensors[f"{a}.weight"]), np.asarray(tensors[f"{a}.bias"], np.float32))
            for a in each
        ]
        self.residual = bool(config["residual"]) and bool(self.weights)
        skip = tensors.get(f"{name}.skip.weight")
        self.skip = None if skip is None else _transposed(skip)

    def __call__(self, x: Array) -> Array:
        """(N, inputs) float32 to (N, outputs) float32."""
        y = x
        for number, (weight, bias) in enumerate(self.weights):
            y = (self.activation(y) if number else y) @ weight
            y += bias
        if self.residual:
            y += x if self.skip is None else x @ self.skip
        return y


def _transposed(weight: NDArray[Any]) -> Array:
    return np.asarray(weight, np.float32).T


def unit_rows(x: Array) -> Array:
    """Returns (N, D) float32 rows scaled to length 1; zero rows stay zero.

    Computed by a C kernel (`encoders/dan/_sums.c`) or, if that is not built, by NumPy.

    Raises:
        ModelError: a row is not finite, which finite but huge weights can cause.
    """
    native = kernel("encoders.dan._sums")
    if native is None or not x.size:
        lengths = finite(np.sqrt(np.einsum("nd,nd->n", x, x)))
        factors = np.float32(1) / np.maximum(lengths, np.float32(1e-12))
        return np.multiply(x, factors[:, None], dtype=np.float32)
    rows = np.ascontiguousarray(x, np.float32)
    out = np.empty_like(rows)
    if not native.unit_rows(rows.shape[1], rows, out):
        raise ModelError(_NOT_FINITE)
    return out


def finite(values: Array) -> Array:
    """Returns `values` after checking that all are finite.

    Raises:
        ModelError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ModelError(_NOT_FINITE)
    return values


Tensors = dict[str, NDArray[Any]]

LARGEST = 31
"""Largest integer in a row. Up to 127 fits, and can be read. With 127, 63, 31 and 15, STS-B dev of
`rejoinder-base` is the same to .0002, but its table, compressed as in a wheel, takes 21.5 MB with
127 and 16.3 MB with 31."""


def scales_name(table: str) -> str:
    """Returns the name of the scales of a table's rows.

    >>> scales_name("encoder.table.weight")
    'encoder.table.scales'
    """
    return f"{table.removesuffix('.weight')}.scales"


def quantize_rows(table: NDArray[np.floating]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Returns (R, D) int8 rows and their (R,) float32 scales; `rows * scales` is near `table`.

    The scale of a row is its largest magnitude divided by `LARGEST`, so no value is off by more
    than half a scale, up to rounding in float32. A zero row has the scale 0.

    >>> rows, scales = quantize_rows(np.array([[0.5, -1.27], [0.0, 0.0]], np.float32))
    >>> rows.tolist(), scales.tolist()
    ([[12, -31], [0, 0]], [0.04096774011850357, 0.0])
    """
    largest = np.abs(table).max(axis=1, initial=0).astype(np.float32)
    scales: NDArray[np.float32] = np.divide(largest, LARGEST, dtype=np.float32)
    divisors = np.where(scales > 0, scales, np.float32(1))[:, None]
    # a scale below the least normal float32 is so coarse that a quotient may exceed `LARGEST`
    rounded = np.clip(np.rint(table / divisors), -LARGEST, LARGEST)
    return rounded.astype(np.int8), scales


def dequantize_rows(rows: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns (R, D) float32, the rows times their (R,) scales; infinite where that overflows."""
    with np.errstate(over="ignore"):
        return np.multiply(rows, scales[:, None], dtype=np.float32)


def dequantized(tensors: Mapping[str, NDArray[Any]]) -> Tensors:
    """Returns the tensors of a model with float32 tables instead of int8 ones and their scales."""
    plain = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == np.int8:
            plain[name] = dequantize_rows(tensor, plain.pop(scales_name(name)))
    return plain


_TABLE = "encoder.table.weight"
_NO_SCALES = np.empty(0, np.float32)


class DanRuntime:
    """Computes embeddings from token ids, in float32 whatever type the table is stored in."""

    library: ClassVar[str] = "numpy"

    def __init__(self, model: "ModelContents", threads: int | None) -> None:
        """Takes a model of kind `dan` and the number of threads, by default one per core."""
        self.workers = threads or default_workers()
        scales = model.tensors.get(scales_name(_TABLE))
        self.sums = BagSums(model.tensors[_TABLE], scales, COMBINERS[model.encoder["combiner"]])
        self.layers = Layers("encoder.dnn", model.encoder, model.tensors)
        self.bigram_rows = model.tensors.get(BIGRAM_ROWS)
        buckets = 0 if self.bigram_rows is None else len(self.bigram_rows)
        self.words = model.features.rows - buckets

    def __call__(self, batch: Ragged) -> Array:
        """(N, D) float32, not normalised; zero rows for sentences without a known feature."""
        rows = self._rows(batch)
        sums = self.sums(rows)  # (N, width)
        if not self.layers.weights:
            return sums
        embeddings = self.layers(sums)
        embeddings[rows.lengths == 0] = 0.0  # an empty sentence must not depend on biases
        return embeddings

    def _rows(self, batch: Ragged) -> Ragged:
        """Table rows of each sentence, without bigrams that have no row."""
        if self.bigram_rows is None:
            return batch
        rows = batch.ids.copy()
        bigrams = rows >= self.words
        rows[bigrams] = self.bigram_rows[rows[bigrams] - self.words]
        return Ragged(rows, batch.offsets).only(rows >= 0)


class BagSums:
    """For each sentence, the sum of its rows of a table, divided by n^power.

    n is the number of ids in the sentence, so that power 1 gives means. Computed by a C kernel
    (`_sums.c`) or, if that is not built, by NumPy. Both agree up to the rounding of float32 sums.
    """

    def __init__(
        self, table: NDArray[Any], scales: Array | None = None, power: float = 0.0
    ) -> None:
        """Takes an (R, D) table of float32, float16, or int8 with (R,) float32 scales of rows."""
        self.table, self.power = np.ascontiguousarray(table), float(power)
        self.scales = _NO_SCALES if scales is None else np.ascontiguousarray(scales, np.float32)
        self._native = kernel("encoders.dan._sums")

    def __call__(self, batch: Ragged) -> Array:
        """Returns (N, D) float32; zero rows for sentences without ids.

        Raises:
            ValueError: an id is below 0 or beyond the table.
        """
        if self._native is None:
            counts = np.maximum(batch.lengths, 1)
            divisors = np.asarray(counts**self.power, np.float32)
            return self._by_numpy(batch) / divisors[:, None]
        width = self.table.shape[1]
        out = np.empty((len(batch), width), np.float32)
        ids = np.ascontiguousarray(batch.ids, np.int32)
        offsets = np.ascontiguousarray(batch.offsets, np.int64)
        kind = self.table.dtype.char
        self._native.sums(kind, width, self.power, self.table, self.scales, ids, offsets, out)
        return out

    def _by_numpy(self, batch: Ragged) -> Array:
        """Adds the first rows of all sentences, then the second rows, and so on."""
        if len(batch.ids) and not 0 <= batch.ids.min() <= batch.ids.max() < len(self.table):
            raise ValueError(f"sums: an id is not one of the {len(self.table)} rows")
        used, indices = np.unique(batch.ids, return_inverse=True)
        rows = self.table[used]
        if rows.dtype == np.int8:
            rows = dequantize_rows(rows, self.scales[used])
        sums = np.zeros((len(batch), self.table.shape[1]), np.float32)
        for position in range(int(batch.lengths.max(initial=0))):
            longer = np.flatnonzero(batch.lengths > position)
            sums[longer] += rows[indices[batch.offsets[longer] + position]]
        return sums
