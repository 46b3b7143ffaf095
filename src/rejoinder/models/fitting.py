"""Fits W of u* = W u, of any encoder, on graded pairs (Yang et al. 2018, §4.4.1, eq. 2).

The paper says that W is "parameterized using the STS training data", but not how. Here the loss is
the squared error of a·s + b, where s is the score of eq. (2), plus a penalty on the squared
distance of W from the identity.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from reprlib import repr as short
from typing import Annotated, Any, get_type_hints

import numpy as np
from msgspec import Meta, convert
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rejoinder.datasets.semeval import GradedPairs, pair_keys
from rejoinder.errors import ConfigError, InputError, ModelError
from rejoinder.io.files.hashed import Count
from rejoinder.models.adaptation import Adaptation, described, refuse_unadaptable
from rejoinder.protocols import Embeddings, Encodes, Prepares

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


_Above = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_Natural = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class FitSettings:
    """Settings of the fit of W. The defaults were chosen on STS-B dev (notebook/results.md)."""

    learning_rate: _Above = 3e-4
    """Learning rate of Adam for W. With large ones W learns the training pairs by heart."""
    scale_learning_rate: _Above = 1e-3
    """Learning rate of Adam for a and b, which start at the least-squares fit."""
    penalty: Annotated[float, Meta(ge=0, le=sys.float_info.max)] = 1e-3
    """Weight of the squared distance of W from the identity in the loss."""
    batch_size: _Natural = 256
    """Pairs per step."""
    max_epochs: _Natural = 60
    """Maximal number of passes over the pairs."""
    patience: _Natural = 5
    """The fit ends after so many epochs without a better Pearson correlation on dev."""
    seed: Count = 0
    """Seed of the order of pairs."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(FitSettings, include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValueError as error:
                raise ConfigError(f"{name} is {value!r}: {error}.") from None


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


def fit_adaptation(
    encoder: Encodes,
    train: GradedPairs,
    dev: GradedPairs,
    settings: FitSettings | None = None,
    *,
    name: str = "stsb",
) -> Adaptation:
    """Fits W on the pairs of `train`; those of `dev` select which W is kept.

    The adaptation records `name`, the name of the data.

    Raises:
        ModelError: the encoder can't be adapted, or does not return an (N, D) array.
        InputError: `encoder` is not an encoder, `train` or `dev` are not graded pairs, an
            embedding is not finite, or D is too large.
    """
    refuse_unadaptable(encoder)
    for which, pairs in (("train", train), ("dev", dev)):
        if not isinstance(pairs, GradedPairs):
            raise InputError(
                f"{which} must be GradedPairs, as read_stsb(folder, split) returns them; got a "
                f"{type(pairs).__name__}."
            )
    texts = list(dict.fromkeys([*train.first, *train.second, *dev.first, *dev.second]))
    if isinstance(encoder, Prepares):
        encoder.prepare(name, texts)
    embeddings = _embed(encoder, texts)
    index = {text: row for row, text in enumerate(texts)}

    def graded(pairs: GradedPairs) -> Graded:
        first, second = ([index[text] for text in side] for side in (pairs.first, pairs.second))
        return Graded(embeddings[first], embeddings[second], pairs.gold)

    fitted = fit(graded(train), graded(dev), settings)
    description = described(encoder)
    facts = {
        **fitted.facts,
        "data": {
            "name": name,
            "split": train.split,
            "form": train.form,
            "sha256": train.sha256,
            "dev_sha256": dev.sha256,
        },
        "encoder": {key: description[key] for key in ("name", "sha256") if key in description},
    }
    keys = np.unique(pair_keys(train.first, train.second))
    return replace(fitted, facts=facts, fitted_pairs=keys)


def _embed(encoder: Encodes, texts: Sequence[str]) -> Embeddings:
    returned = encoder.encode(texts)
    try:
        rows = np.asarray(returned, np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the encoder did not return an array of numbers: {error}.") from error
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ModelError(
            f"the encoder returned an array of shape {rows.shape} for {len(texts)} sentences; "
            "(N, D) is needed."
        )
    if not 0 < rows.shape[1] <= _MAX_DIM:
        raise InputError(
            f"embeddings of {rows.shape[1]:,} dimensions can't be adapted; at most {_MAX_DIM:,}, "
            "because W has their square."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        text = texts[int(np.argmin(finite))]
        raise InputError(f"the embedding of {short(text)} is not finite.")
    return rows


def fit(train: Graded, dev: Graded, settings: FitSettings | None = None) -> Adaptation:
    """Fits W with Adam, and keeps the epoch with the best correlation on dev, W = I included.

    The facts of the map hold the settings, the Pearson correlations on dev before and after, the
    epoch that was kept, and a and b. The same input and seed give the same map.

    Raises:
        InputError: gold is outside 0-5 or all equal.
    """
    settings = settings or FitSettings()
    for which, gold in (("training", train.gold), ("dev", dev.gold)):
        if len(gold) < 2 or not 0 <= gold.min() < gold.max() <= 5:
            raise InputError(
                f"the gold scores of the {len(gold)} {which} pairs can't be fitted: scores from 0 "
                "to 5 are needed, and not all equal."
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
        "settings": asdict(settings),
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
