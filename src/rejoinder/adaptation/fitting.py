"""Fitting W of u* = W u on graded pairs (Yang et al. 2018, §4.4.1, eq. 2), in NumPy.

The paper says that W is "parameterized using the STS training data", not how. Ours: squared error
of a·s + b, s the score of eq. (2), with a penalty on what W is away from the identity.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rejoinder.adaptation.linear import Adaptation
from rejoinder.errors import ConfigError, InputError
from rejoinder.protocols import Embeddings

Floats = NDArray[np.floating[Any]]
"""Of float32 or float64: products are computed in the type of the embeddings."""

_DECAYS = (0.9, 0.999)
_TINY = 1e-8
"""Adam's, as published (Kingma and Ba 2015, algorithm 1)."""
_STEEPEST = 1e-6
"""How near to 1 a cosine counts in the derivative of the angle, which is infinite at 1."""
_NARROW = 1_024
"""Dimensions up to which one core is enough."""
_WIDEST = 8_192
"""Dimensions: the map is of their square, in the optimiser four times."""


@dataclass(frozen=True)
class FitSettings:
    """How W is fitted; the defaults were chosen on STS-B dev (docs/results.md)."""

    learning_rate: float = 3e-4
    """Of Adam, for W; large steps learn the training pairs by heart."""
    scale_learning_rate: float = 1e-3
    """Of Adam, for a and b, which begin at their least squares."""
    penalty: float = 1e-3
    """Times the squared distance of W from the identity, added to the mean squared error."""
    batch_size: int = 256
    """Pairs a step."""
    max_epochs: int = 60
    """Passes over the pairs at most."""
    patience: int = 5
    """Epochs without a better Pearson correlation on dev after which the fit ends."""
    seed: int = 0
    """Of the order of pairs."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            whole = name in ("batch_size", "max_epochs", "patience", "seed")
            kinds = int | np.integer if whole else int | float | np.integer | np.floating
            if not isinstance(value, kinds) or isinstance(value, bool):
                kind = "a whole number" if whole else "a number"
                raise ConfigError(f"{name} must be {kind}; got {value!r}.")
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
    """(N, D), of any length; zero rows have the cosine 0 with anything."""
    second: Floats
    """(N, D)."""
    gold: NDArray[np.float64]
    """(N,), 0 to 5."""

    def __len__(self) -> int:
        return len(self.gold)

    def rows(self, chosen: NDArray[np.int64]) -> "Graded":
        """Some of the pairs."""
        return Graded(self.first[chosen], self.second[chosen], self.gold[chosen])


def fit(
    first: Embeddings,
    second: Embeddings,
    gold: NDArray[np.float64],
    dev_first: Embeddings,
    dev_second: Embeddings,
    dev_gold: NDArray[np.float64],
    settings: FitSettings | None = None,
) -> Adaptation:
    """The map that fits best on dev of those that Adam passes, W = I among them.

    Args:
        first: (N, D) float32, one side of the pairs that are fitted; zero rows are allowed.
        second: (N, D) float32, the other side.
        gold: (N,) float64, 0 to 5.
        dev_first: (M, D) float32, one side of the pairs that say when to stop.
        dev_second: (M, D) float32, the other side.
        dev_gold: (M,) float64, 0 to 5.
        settings: see `FitSettings`.

    Returns:
        The map; its facts hold the settings, the Pearson correlations on dev before and after,
        the epoch that was kept, and a and b. The same input and seed give the same map.

    Raises:
        InputError: shapes that do not belong together, a value that is not finite, gold that is
            outside 0-5 or all equal.
    """
    settings = FitSettings() if settings is None else settings
    if not isinstance(settings, FitSettings):
        raise InputError(f"settings must be FitSettings; got a {type(settings).__name__}.")
    train = _checked("training", first, second, gold)
    dev = _checked("dev", dev_first, dev_second, dev_gold)
    if train.first.shape[1] != dev.first.shape[1]:
        raise InputError(
            f"embeddings of {train.first.shape[1]} and {dev.first.shape[1]} dimensions: training "
            "and dev pairs are of one encoder."
        )
    # small products are faster on one core: their threads wait for each other wherever something
    # else runs (24 s in place of 4 on two busy cores)
    cores = 1 if train.first.shape[1] <= _NARROW else None
    with threadpool_limits(cores, user_api="blas"):
        return _fit(train, dev, settings)


def _fit(train: Graded, dev: Graded, settings: FitSettings) -> Adaptation:
    matrix: Floats = np.eye(train.first.shape[1], dtype=np.float32)
    scale = _least_squares(scores(matrix, train), train.gold)
    before = _pearson(scores(matrix, dev), dev.gold)
    best, kept, kept_scale, kept_epoch = before, matrix.copy(), scale.copy(), 0
    adam = _Adam(matrix, settings.learning_rate), _Adam(scale, settings.scale_learning_rate)
    for epoch in range(1, settings.max_epochs + 1):
        for batch in _batches(train, settings, epoch):
            _, *gradients = loss_and_gradients(matrix, scale, batch, settings.penalty)
            for part, gradient in zip(adam, gradients, strict=True):
                part.step(gradient)
        after = _pearson(scores(matrix, dev), dev.gold)
        if after > best:
            best, kept, kept_scale, kept_epoch = after, matrix.copy(), scale.copy(), epoch
        elif epoch - kept_epoch >= settings.patience:
            break
    facts = {
        "kind": "linear",
        "pairs": len(train),
        "dev_pairs": len(dev),
        "dev_pearson_before": before,
        "dev_pearson_after": best,
        "epochs": kept_epoch,
        "scale": [float(kept_scale[0]), float(kept_scale[1])],
        "settings": {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in vars(settings).items()
        },
    }
    return Adaptation(kept.astype(np.float32), facts)


def scores(matrix: Floats, pairs: Graded) -> NDArray[np.float64]:
    """(N,) float64 scores of adapted pairs, 0 to 5: eq. (2); 2.5 where a row is zero."""
    return _scores(_cosines(pairs.first @ matrix.T, pairs.second @ matrix.T)[0])


def loss_and_gradients(
    matrix: Floats, scale: NDArray[np.float64], pairs: Graded, penalty: float
) -> tuple[float, Floats, NDArray[np.float64]]:
    """Mean squared error of a·s + b, plus `penalty` · ||W - I||², and its derivatives.

    Args:
        matrix: W, (D, D).
        scale: (a, b).
        pairs: N pairs.
        penalty: 0 or more.

    Returns:
        The loss, its gradient by W (D, D) in the type of `matrix`, and by (a, b).
    """
    x, y = pairs.first @ matrix.T, pairs.second @ matrix.T  # (N, D) each
    cosine, x_length, y_length = _cosines(x, y)
    s = _scores(cosine)
    errors = scale[0] * s + scale[1] - pairs.gold
    away = matrix - np.eye(len(matrix), dtype=matrix.dtype)
    loss = float((errors**2).mean() + penalty * np.square(away, dtype=np.float64).sum())
    by_scale = 2 * np.array([(errors * s).mean(), errors.mean()])
    # d angle / d x has length 1/|x| at any cosine, but is infinity times zero at 1: the infinite
    # factor is cut there, so that pairs of equal texts, which no W can tell apart, pull at nothing
    sine = np.sqrt(np.maximum(1 - cosine**2, 2 * _STEEPEST))
    by_cosine = 2 / len(pairs) * errors * scale[0] * 5 / np.pi / sine
    by_cosine = np.where((x_length > 0) & (y_length > 0), by_cosine, 0.0)
    x_length, y_length = np.maximum(x_length, 1e-30), np.maximum(y_length, 1e-30)
    across = by_cosine / (x_length * y_length)
    by_x = _times(y, across) - _times(x, by_cosine * cosine / x_length**2)
    by_y = _times(x, across) - _times(y, by_cosine * cosine / y_length**2)
    by_matrix = by_x.T @ pairs.first + by_y.T @ pairs.second + (2 * penalty) * away
    return loss, by_matrix.astype(matrix.dtype, copy=False), by_scale


def _times(rows: Floats, factors: NDArray[np.float64]) -> Floats:
    return rows * factors.astype(rows.dtype)[:, None]


def _cosines(x: Floats, y: Floats) -> tuple[NDArray[np.float64], ...]:
    """(N,) cosines, 0 of zero rows, and the lengths of both sides; summed in float64."""
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
    """(a, b) of a·s + b nearest to gold."""
    design = np.stack([s, np.ones_like(s)], axis=1)
    return np.linalg.lstsq(design, gold, rcond=None)[0].astype(np.float64)


def _pearson(s: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    """Pearson's r; 0 where all scores are equal, as they are of an encoder that knows no word."""
    s, gold = s - s.mean(), gold - gold.mean()
    spread = float(np.sqrt((s @ s) * (gold @ gold)))
    return float(s @ gold) / spread if spread > 0 else 0.0


def _batches(train: Graded, settings: FitSettings, epoch: int) -> Iterator[Graded]:
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(train))
    for low in range(0, len(order), settings.batch_size):
        yield train.rows(order[low : low + settings.batch_size])


class _Adam:
    """Adam (Kingma and Ba 2015, algorithm 1), in place."""

    def __init__(self, values: Floats, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = np.zeros_like(values), np.zeros_like(values)
        self.count = 0

    def step(self, gradient: Floats) -> None:
        """One step against `gradient`."""
        self.count += 1
        slow, slower = _DECAYS
        self.mean += (1 - slow) * (gradient - self.mean)
        self.square += (1 - slower) * (gradient * gradient - self.square)
        size = self.rate / (1 - slow**self.count)
        root = np.sqrt(self.square / (1 - slower**self.count))
        self.values -= size * self.mean / (root + _TINY)


def _checked(
    which: str, first: Embeddings, second: Embeddings, gold: NDArray[np.float64]
) -> Graded:
    try:
        gold = np.asarray(gold, np.float64)
        with np.errstate(over="ignore"):  # what overflows is refused below
            first, second = np.asarray(first, np.float32), np.asarray(second, np.float32)
    except (TypeError, ValueError) as error:  # text, or rows of several lengths
        raise InputError(f"{which} pairs are no arrays of numbers: {error}.") from None
    if first.ndim != 2 or first.shape != second.shape or gold.shape != (len(first),):
        raise InputError(
            f"{which} pairs of shapes {first.shape}, {second.shape} and gold {gold.shape} do not "
            "belong together; (N, D), (N, D) and (N,) are needed."
        )
    if not 0 < first.shape[1] <= _WIDEST:
        raise InputError(
            f"embeddings of {first.shape[1]:,} dimensions can't be adapted: the map is of their "
            f"square; at most {_WIDEST:,}."
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
        raise InputError(f"the gold of the {which} pairs is all equal: nothing can be fitted.")
    return Graded(first, second, gold)
