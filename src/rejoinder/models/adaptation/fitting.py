"""Fits W of u* = W u on graded pairs (Yang et al. 2018, §4.4.1, eq. 2), in NumPy.

The paper says that W is "parameterized using the STS training data", but not how. Here the loss is
the squared error of a·s + b, where s is the score of eq. (2), plus a penalty on the squared
distance of W from the identity.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rejoinder.errors import ConfigError, InputError
from rejoinder.models.adaptation.linear import Adaptation

Floats = NDArray[np.floating[Any]]
"""float32 or float64. Products are computed in the type of the embeddings."""

_DECAYS = (0.9, 0.999)
_EPSILON = 1e-8
"""Constants of Adam as published (Kingma and Ba 2015, algorithm 1)."""
_MIN_DISTANCE = 1e-6
"""Least distance of a cosine from 1 in the derivative of the angle, which is infinite at 1."""
_MAX_DIM_ONE_CORE = 1_024
"""Largest dimension for which one core is used."""
_MAX_DIM = 8_192
"""Largest dimension D. The map and Adam need four matrices of (D, D)."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of the fit of W, chosen on STS-B dev (docs/measurements/results.md)."""

    learning_rate: float = 3e-4
    """Learning rate of Adam for W. With large ones W learns the training pairs by heart."""
    scale_learning_rate: float = 1e-3
    """Learning rate of Adam for a and b, which start at the least-squares fit."""
    penalty: float = 1e-3
    """Weight of the squared distance of W from the identity in the loss."""
    batch_size: int = 256
    """Pairs per step."""
    max_epochs: int = 60
    """Maximal number of passes over the pairs."""
    patience: int = 5
    """The fit ends after so many epochs without a better Pearson correlation on dev."""
    seed: int = 0
    """Seed of the order of pairs."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            whole = name in ("batch_size", "max_epochs", "patience", "seed")
            types = int | np.integer if whole else int | float | np.integer | np.floating
            if not isinstance(value, types) or isinstance(value, bool):
                needed = "a whole number" if whole else "a number"
                raise ConfigError(f"{name} must be {needed}; got {value!r}.")
        positive = ("learning_rate", "scale_learning_rate", "batch_size", "max_epochs", "patience")
        for name in positive:
            if not 0 < getattr(self, name) < np.inf:
                raise ConfigError(f"{name} must be above 0; got {getattr(self, name)}.")
        for name in ("penalty", "seed"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"{name} must be 0 or more; got {getattr(self, name)}.")


@dataclass(frozen=True)
class Graded:
    """Embedded pairs with their gold scores."""

    first: Floats
    """(N, D) rows of any length. Zero rows have the cosine 0 with anything."""
    second: Floats
    """(N, D), the other sentence of each pair."""
    gold: NDArray[np.float64]
    """(N,) gold scores, 0 to 5."""

    def __len__(self) -> int:
        return len(self.gold)

    def rows(self, indices: NDArray[np.int64]) -> "Graded":
        """Returns the pairs at `indices`."""
        return Graded(self.first[indices], self.second[indices], self.gold[indices])


def fit(train: Graded, dev: Graded, settings: FitSettings | None = None) -> Adaptation:
    """Fits W with Adam, and keeps the epoch with the best correlation on dev, W = I included.

    The facts of the map hold the settings, the Pearson correlations on dev before and after, the
    epoch that was kept, and a and b. The same input and seed give the same map.

    Raises:
        InputError: the shapes do not belong together, a value is not finite, or gold is outside
            0-5 or all equal.
    """
    settings = FitSettings() if settings is None else settings
    if not isinstance(settings, FitSettings):
        raise InputError(f"settings must be FitSettings; got a {type(settings).__name__}.")
    train, dev = _checked("training", train), _checked("dev", dev)
    if train.first.shape[1] != dev.first.shape[1]:
        raise InputError(
            f"embeddings of {train.first.shape[1]} and {dev.first.shape[1]} dimensions: training "
            "and dev pairs need the same encoder."
        )
    # small products are faster on one core, because threads wait for each other where something
    # else runs (24 s instead of 4 on two busy cores)
    cores = 1 if train.first.shape[1] <= _MAX_DIM_ONE_CORE else None
    with threadpool_limits(cores, user_api="blas"):
        return _fit(train, dev, settings)


def _fit(train: Graded, dev: Graded, settings: FitSettings) -> Adaptation:
    matrix: Floats = np.eye(train.first.shape[1], dtype=np.float32)
    scale = _least_squares(scores(matrix, train), train.gold)
    before = _pearson(scores(matrix, dev), dev.gold)
    best, best_matrix, best_scale, best_epoch = before, matrix.copy(), scale.copy(), 0
    adam = _Adam(matrix, settings.learning_rate), _Adam(scale, settings.scale_learning_rate)
    for epoch in range(1, settings.max_epochs + 1):
        for batch in _batches(train, settings, epoch):
            _, *gradients = loss_and_gradients(matrix, scale, batch, settings.penalty)
            for optimizer, gradient in zip(adam, gradients, strict=True):
                optimizer.step(gradient)
        after = _pearson(scores(matrix, dev), dev.gold)
        if after > best:
            best, best_matrix, best_scale, best_epoch = after, matrix.copy(), scale.copy(), epoch
        elif epoch - best_epoch >= settings.patience:
            break
    facts = {
        "kind": "linear",
        "pairs": len(train),
        "dev_pairs": len(dev),
        "dev_pearson_before": before,
        "dev_pearson_after": best,
        "epochs": best_epoch,
        "scale": best_scale.tolist(),
        "settings": {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in vars(settings).items()
        },
    }
    return Adaptation(best_matrix.astype(np.float32), facts)


def scores(matrix: Floats, pairs: Graded) -> NDArray[np.float64]:
    """Returns (N,) float64 scores of eq. (2), 0 to 5. Pairs with a zero row get 2.5."""
    return _scores(_cosines(pairs.first @ matrix.T, pairs.second @ matrix.T)[0])


def loss_and_gradients(
    matrix: Floats, scale: NDArray[np.float64], pairs: Graded, penalty: float
) -> tuple[float, Floats, NDArray[np.float64]]:
    """Returns the mean squared error of a·s + b plus `penalty` · ||W - I||², and its gradients.

    `matrix` is W, (D, D), and `scale` is (a, b). The gradients are those with respect to W, in
    the type of `matrix`, and to (a, b).
    """
    x, y = pairs.first @ matrix.T, pairs.second @ matrix.T  # (N, D) each
    cosine, x_length, y_length = _cosines(x, y)
    s = _scores(cosine)
    errors = scale[0] * s + scale[1] - pairs.gold
    offset = matrix - np.eye(len(matrix), dtype=matrix.dtype)
    loss = float((errors**2).mean() + penalty * np.square(offset, dtype=np.float64).sum())
    by_scale = 2 * np.array([(errors * s).mean(), errors.mean()])
    # d angle / d x has length 1/|x| at any cosine, but at 1 it is infinity times zero. The infinite
    # factor is bounded there, so that pairs of equal texts, which no W can tell apart, have no
    # gradient
    sine = np.sqrt(np.maximum(1 - cosine**2, 2 * _MIN_DISTANCE))
    by_cosine = 2 / len(pairs) * errors * scale[0] * 5 / np.pi / sine
    by_cosine = np.where((x_length > 0) & (y_length > 0), by_cosine, 0.0)
    x_length, y_length = np.maximum(x_length, 1e-30), np.maximum(y_length, 1e-30)
    across = by_cosine / (x_length * y_length)
    by_x = _times(y, across) - _times(x, by_cosine * cosine / x_length**2)
    by_y = _times(x, across) - _times(y, by_cosine * cosine / y_length**2)
    by_matrix = by_x.T @ pairs.first + by_y.T @ pairs.second + (2 * penalty) * offset
    return loss, by_matrix.astype(matrix.dtype, copy=False), by_scale


def _times(rows: Floats, factors: NDArray[np.float64]) -> Floats:
    return rows * factors.astype(rows.dtype)[:, None]


def _cosines(x: Floats, y: Floats) -> tuple[NDArray[np.float64], ...]:
    """Returns (N,) cosines, 0 for zero rows, and the lengths of both sides, summed in float64."""
    dot, xx, yy = (
        np.einsum("nd,nd->n", a, b, dtype=np.float64) for a, b in ((x, y), (x, x), (y, y))
    )
    x_length, y_length = np.sqrt(xx), np.sqrt(yy)
    lengths = x_length * y_length
    cosine = np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)
    return np.clip(cosine, -1.0, 1.0), x_length, y_length


def _scores(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    return 5 * (1 - np.arccos(cosine) / np.pi)


def _least_squares(s: NDArray[np.float64], gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the (a, b) for which a·s + b is nearest to gold."""
    design = np.stack([s, np.ones_like(s)], axis=1)
    return np.linalg.lstsq(design, gold, rcond=None)[0].astype(np.float64)


def _pearson(s: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    """Returns Pearson's r. It is 0 where all scores are equal: the encoder knows no word."""
    s, gold = s - s.mean(), gold - gold.mean()
    spread = float(np.sqrt((s @ s) * (gold @ gold)))
    return float(s @ gold) / spread if spread > 0 else 0.0


def _batches(train: Graded, settings: FitSettings, epoch: int) -> Iterator[Graded]:
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(train))
    for low in range(0, len(order), settings.batch_size):
        yield train.rows(order[low : low + settings.batch_size])


class _Adam:
    """Adam (Kingma and Ba 2015, algorithm 1). It changes `values` in place."""

    def __init__(self, values: Floats, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = np.zeros_like(values), np.zeros_like(values)
        self.count = 0

    def step(self, gradient: Floats) -> None:
        """Takes one step against `gradient`."""
        self.count += 1
        slow, slower = _DECAYS
        self.mean += (1 - slow) * (gradient - self.mean)
        self.square += (1 - slower) * (gradient * gradient - self.square)
        size = self.rate / (1 - slow**self.count)
        root = np.sqrt(self.square / (1 - slower**self.count))
        self.values -= size * self.mean / (root + _EPSILON)


def _checked(which: str, pairs: Graded) -> Graded:
    """Returns the pairs with float32 embeddings and float64 gold scores that can be fitted."""
    try:
        gold = np.asarray(pairs.gold, np.float64)
        with np.errstate(over="ignore"):  # infinities are refused below
            first, second = (np.asarray(side, np.float32) for side in (pairs.first, pairs.second))
    except (TypeError, ValueError) as error:  # text, or rows of several lengths
        raise InputError(f"{which} pairs are not arrays of numbers: {error}.") from None
    if first.ndim != 2 or first.shape != second.shape or gold.shape != (len(first),):
        raise InputError(
            f"{which} pairs of shapes {first.shape}, {second.shape} and gold {gold.shape} do not "
            "belong together; (N, D), (N, D) and (N,) are needed."
        )
    if not 0 < first.shape[1] <= _MAX_DIM:
        raise InputError(
            f"embeddings of {first.shape[1]:,} dimensions can't be adapted; at most "
            f"{_MAX_DIM:,}, because W has their square."
        )
    for rows in (first, second):
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise InputError(f"the embedding of {which} pair {np.argmin(finite)} is not finite.")
    inside = (gold >= 0) & (gold <= 5)
    if not inside.all():
        wrong = int(np.argmin(inside))
        raise InputError(f"gold of {which} pair {wrong} is {gold[wrong]}; scores go from 0 to 5.")
    if len(gold) < 2 or gold.min() == gold.max():
        raise InputError(
            f"the gold scores of the {which} pairs are all equal; nothing can be fitted."
        )
    return Graded(first, second, gold)
