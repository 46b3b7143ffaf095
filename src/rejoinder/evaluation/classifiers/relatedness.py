"""A graded score as a distribution over whole grades (Tai et al. 2015, §4.2), as in SentEval.

A softmax over the grades is trained on squared error; the prediction is its mean grade.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures.arrays import Floats as Array
from rejoinder.measures.correlation import pearson_correlation
from rejoinder.measures.ranks import spearman_correlation

Features = NDArray[np.float32]

_PENALTIES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""Of half the squared weights beside the mean squared error: from strong to weak, the solution of
one is the start of the next."""
_ITERATIONS = 50
_PATIENCE = 3
_EPOCHS = 50
"""Between two looks at dev, in the original."""
_MOST_EPOCHS = 1_000


@dataclass(frozen=True)
class Graded:
    """Features of pairs of one split, and their gold scores."""

    features: Features
    gold: Array


@dataclass(frozen=True)
class Related:
    """What a regression predicts of dev and test: (N,) mean grades each."""

    dev: Array
    test: Array


def grade_distribution(scores: Array, low: int, high: int) -> Array:
    """(N, high - low + 1) float64: the two grades around each score share its weight.

    Every row sums to 1, also for scores in [0, 1), which the original gets wrong for the STS
    Benchmark: it has grades 1 to 5 only.

    >>> grade_distribution(np.array([0.25, 5.0]), 0, 5).tolist()
    [[0.75, 0.25, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    grades = np.arange(low, high + 1)
    shares: Array = np.clip(1 - np.abs(np.asarray(scores)[:, None] - grades), 0, 1)
    return shares


def fit_relatedness(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> Related:
    """The predicted scores of dev and test.

    Args:
        train: what the model is fitted on; in `compat` the draws go through it in its order.
        dev: chooses the penalty by Spearman's rho (`fast`), or the moment to stop by Pearson's r
            (`compat`, as the original).
        test: what is predicted.
        grades: lowest and highest grade.
        settings: the mode, and the seed of `compat`.

    Raises:
        MissingExtraError: `compat` needs PyTorch, and it is not installed.
    """
    if settings.mode == "compat":
        return _original(train, dev, test, grades, settings)
    values = np.arange(grades[0], grades[1] + 1)
    target = grade_distribution(train.gold, *grades)
    center = train.features.mean(axis=0, dtype=np.float64).astype(np.float32)
    # one penalty for all features fits only if they are of one size
    scale = 1 / np.maximum(train.features.std(axis=0), np.float32(1e-12))
    rows = [_with_one((part.features - center) * scale) for part in (train, dev, test)]
    weights = np.zeros((rows[0].shape[1], len(values)))
    best, found = -2.0, Related(np.zeros(len(dev.gold)), np.zeros(len(test.gold)))
    for penalty in _PENALTIES:
        weights = _minimum(rows[0], target, penalty, weights)
        on_dev = _mean_grade(rows[1], weights, values)
        # equal predictions rank nothing: worse than any order
        rho = spearman_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else -1.0
        if rho > best:
            best, found = rho, Related(on_dev, _mean_grade(rows[2], weights, values))
    return found


def _with_one(rows: Features) -> Features:
    return np.hstack([rows, np.ones((len(rows), 1), np.float32)])


def _mean_grade(rows: Features, weights: Array, values: NDArray[np.int64]) -> Array:
    grades: Array = softmax((rows @ weights.astype(np.float32)).astype(np.float64), axis=1)
    return grades @ values


def _minimum(rows: Features, target: Array, penalty: float, start: Array) -> Array:
    """Weights (D + 1, K) at the least penalised squared error; the intercept is free."""
    size = target.size

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        shares = softmax((rows @ weights.astype(np.float32)).astype(np.float64), axis=1)
        error = shares - target
        slope = 2 * error / size
        slope = shares * (slope - (slope * shares).sum(axis=1, keepdims=True))
        gradient = (rows.T @ slope.astype(np.float32)).astype(np.float64)
        gradient[:-1] += penalty * weights[:-1]
        loss = float((error**2).sum()) / size + 0.5 * penalty * float((weights[:-1] ** 2).sum())
        return loss, gradient.ravel()

    options = {"maxiter": _ITERATIONS, "maxcor": 20, "gtol": 1e-7, "ftol": 1e-10}
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    solution: Array = found.x.reshape(start.shape)
    return solution


def _original(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> Related:
    """SentEval's relatedness.py: Adam in batches of 64, a look at dev every 50 epochs.

    Its draws are the original's: weights as PyTorch draws them after the seed, batches as NumPy.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "train") from None
    chance = np.random.RandomState(settings.seed)
    values = np.arange(grades[0], grades[1] + 1)
    inputs = torch.from_numpy(np.ascontiguousarray(train.features))
    targets = torch.from_numpy(grade_distribution(train.gold, *grades).astype(np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        linear = torch.nn.Linear(inputs.shape[1], len(values))
    model: Any = torch.nn.Sequential(linear, torch.nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(model.parameters())

    def predict(part: Graded) -> Array:
        with torch.no_grad():
            shares = model(torch.from_numpy(np.ascontiguousarray(part.features)))
        return np.asarray(shares.numpy(), np.float64) @ values

    best, kept, waited = -1.0, copy.deepcopy(model), 0
    for _ in range(0, _MOST_EPOCHS + 1, _EPOCHS):
        for _ in range(_EPOCHS):
            order = torch.from_numpy(chance.permutation(len(inputs)))
            for start in range(0, len(inputs), 64):
                rows = order[start : start + 64]
                loss = torch.nn.functional.mse_loss(model(inputs[rows]), targets[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        on_dev = predict(dev)
        # of equal predictions, whose correlation is not defined, the original makes 0
        r = pearson_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else 0.0
        if r > best:
            best, kept = r, copy.deepcopy(model)
        elif waited >= _PATIENCE:
            break
        else:
            waited += 1
    model = kept
    return Related(predict(dev), predict(test))
