"""Predicts graded scores through a distribution over whole grades, as SentEval does.

A softmax over the grades is trained on the squared error, and the prediction is its mean grade
(Tai et al. 2015, §4.2).
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from rejoinder.errors import require
from rejoinder.evaluation.classifiers.learners import ClassifierSettings, Features
from rejoinder.measures import Floats, Indices, pearson_correlation, spearman_correlation

_PENALTIES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""Factors of half the squared weights in the objective, from strong to weak. The solution for each
is the start for the next."""
_ITERATIONS = 50


@dataclass(frozen=True)
class Graded:
    """(N, F) features of the pairs of a split, and their (N,) gold scores."""

    features: Features
    gold: Floats


def trained(
    model: Any,
    rows: int,
    loss: Callable[[Indices, Indices, np.random.RandomState], Any],
    score: Callable[[Any], float],
    seed: int,
    *,
    batch: int,
    epochs: int,
) -> tuple[Any, float]:
    """Trains a PyTorch module by Adam, and returns the best one with its score.

    `loss` takes the rows of a batch, the others, and the generator of the batches. A module is
    scored after every `epochs`. Training stops at the fourth score without gain, in total as in
    SentEval, or after 21 scores: the original means 20, but compares their number by <=.
    """
    import torch

    generator = np.random.RandomState(seed)
    optimizer = torch.optim.Adam(model.parameters())
    best, highest, left = copy.deepcopy(model), -1.0, 3
    for _ in range(21):
        for _ in range(epochs):
            order = generator.permutation(rows)
            for start in range(0, rows, batch):
                end = start + batch
                optimizer.zero_grad()
                others = np.concatenate([order[:start], order[end:]])
                loss(order[start:end], others, generator).backward()
                optimizer.step()
        if (found := score(model)) > highest:
            best, highest = copy.deepcopy(model), found
            continue
        left -= 1
        if left < 0:
            break
    return best, highest


def grade_distribution(scores: Floats, low: int, high: int) -> Floats:
    """Returns (N, high - low + 1) distributions over grades whose means are the (N,) scores.

    The two grades next to a score share the weight of 1. SentEval has grades 1 to 5 only, so that
    its distributions are wrong for scores of the STS Benchmark below 1; here they are right.

    >>> grade_distribution(np.array([0.25, 5.0]), 0, 5).tolist()
    [[0.75, 0.25, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    grades = np.arange(low, high + 1)
    shares: Floats = np.clip(1 - np.abs(np.asarray(scores)[:, None] - grades), 0, 1)
    return shares


def fit_relatedness(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> tuple[Floats, Floats]:
    """Fits a model of grades on train, and returns the mean grades of dev and test.

    Dev chooses the penalty by Spearman's rho (`fast`), or when to stop by Pearson's r (`compat`, as
    in SentEval). In `compat`, the order of train affects the batches.

    Raises:
        MissingExtraError: `compat` needs PyTorch, which is not installed.
    """
    if settings.mode == "compat":
        return _original(train, dev, test, grades, settings)
    values = np.arange(grades[0], grades[1] + 1)
    target = grade_distribution(train.gold, *grades)
    center = train.features.mean(axis=0, dtype=np.float64).astype(np.float32)
    # one penalty for all features is right only if they have the same scale
    scale = 1 / np.maximum(train.features.std(axis=0), np.float32(1e-12))
    rows = [
        np.hstack([(part.features - center) * scale, np.ones((len(part.gold), 1), np.float32)])
        for part in (train, dev, test)
    ]
    weights = np.zeros((rows[0].shape[1], len(values)))
    best, related = -2.0, (np.zeros(len(dev.gold)), np.zeros(len(test.gold)))
    for penalty in _PENALTIES:
        weights = _minimum(rows[0], target, penalty, weights)
        on_dev = _mean_grade(rows[1], weights, values)
        # rho of equal predictions is not defined; they are worse than any order
        rho = spearman_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else -1.0
        if rho > best:
            best, related = rho, (on_dev, _mean_grade(rows[2], weights, values))
    return related


def _mean_grade(rows: Features, weights: Floats, values: NDArray[np.int64]) -> Floats:
    grades: Floats = softmax((rows @ weights.astype(np.float32)).astype(np.float64), axis=1)
    return grades @ values


def _minimum(rows: Features, target: Floats, penalty: float, start: Floats) -> Floats:
    """Returns (D + 1, K) weights of the least squared error. The intercept has no penalty."""
    size = target.size

    def objective(flat: Floats) -> tuple[float, Floats]:
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
    # NumPy's and SciPy's threads would wait for each other: two take twice as long as one
    with threadpool_limits(1, user_api="blas"):
        result = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    solution: Floats = result.x.reshape(start.shape)
    return solution


def _original(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> tuple[Floats, Floats]:
    """Trains as SentEval's relatedness.py: by Adam, with an evaluation on dev every 50 epochs."""
    require("train", "torch")
    import torch

    values = np.arange(grades[0], grades[1] + 1)
    inputs = torch.from_numpy(np.ascontiguousarray(train.features))
    targets = torch.from_numpy(grade_distribution(train.gold, *grades).astype(np.float32))
    with torch.random.fork_rng(devices=[]):  # as in SentEval, NumPy draws the batches
        torch.manual_seed(settings.seed)
        linear = torch.nn.Linear(inputs.shape[1], len(values))
    model: Any = torch.nn.Sequential(linear, torch.nn.Softmax(dim=-1))

    def predict(model: Any, part: Graded) -> Floats:
        with torch.no_grad():
            shares = model(torch.from_numpy(np.ascontiguousarray(part.features)))
        return np.asarray(shares.numpy(), np.float64) @ values

    def loss(rows: Indices, *_: Any) -> Any:
        return torch.nn.functional.mse_loss(model(inputs[rows]), targets[rows])

    def score(model: Any) -> float:
        on_dev = predict(model, dev)
        # r of equal predictions is not defined; SentEval takes 0
        return pearson_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else 0.0

    best, _ = trained(model, len(inputs), loss, score, settings.seed, batch=64, epochs=50)
    return predict(best, dev), predict(best, test)
