r"""Logistic regression: every fold and every penalty of a grid in one run of batched products.

A problem is a set of training rows and a penalty. All problems share the data, so one iteration
for all of them is two matrix products. Each iteration minimises a bound of the objective with the
fixed curvature c·X'X + penalty (Böhning and Lindsay 1988; c is 1/4 for two classes, 1/2 for
more), in the basis in which X'X is diagonal; Nesterov's momentum with restarts (O'Donoghue and
Candès 2015) speeds it up. No line search, no step size.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ROWS = 512
"""Rows at once: their scores for all problems stay in the cache of a core."""
_TOLERANCE = 1e-7
"""Of the predicted gain of a step, as a share of the number of training rows."""
_ITERATIONS = 1_000
_CHECK = 5


@dataclass(frozen=True)
class Problems:
    """Which rows each of P problems is trained on, and how strongly it is held back."""

    folds: NDArray[np.bool_]
    """(N, F): the training rows of each fold."""
    fold: NDArray[np.int64]
    """(P,): which fold a problem is trained on."""
    penalty: Floats
    """(P,): the factor of half the squared weights; the inverse of scikit-learn's C."""

    def __len__(self) -> int:
        return len(self.fold)


class LogisticGrid:
    """The fitted weights of all problems.

    With two classes one vector of weights separates them; with K > 2 there are K, all of them
    penalised, as in scikit-learn. Intercepts are not penalised.
    """

    def __init__(self, features: NDArray[np.floating], labels: NDArray[np.int64]) -> None:
        """Rotate (N, D) features so that their products are diagonal.

        Args:
            features: (N, D); finite.
            labels: (N,), 0 to K - 1.
        """
        self.labels = labels
        self.classes = int(labels.max()) + 1
        self._center = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        centered = features.astype(np.float32) - self._center
        gram = (centered.T @ centered).astype(np.float64)
        curvature, self._basis = np.linalg.eigh(gram)
        self._basis = self._basis.astype(np.float32)
        self.rows = self._rotated(features)
        bound = 0.25 if self.classes == 2 else 0.5
        # the last place is the intercept's: its feature is 1 everywhere
        self._curvature = bound * np.append(np.maximum(curvature, 0.0), len(features))

    def _rotated(self, features: NDArray[np.floating]) -> Floats:
        rotated = (features.astype(np.float32) - self._center) @ self._basis
        return np.hstack([rotated, np.ones((len(rotated), 1), np.float32)])

    @property
    def outputs(self) -> int:
        """Scores a row and problem: 1 with two classes, else one a class."""
        return 1 if self.classes == 2 else self.classes

    def fit(self, problems: Problems) -> Floats:
        """(D + 1, P, K) float32 weights in the rotated basis; K is `outputs`."""
        count, size = len(problems), self.rows.shape[1]
        done = np.zeros((size, count, self.outputs), np.float32)
        active = np.arange(count)
        weights, before = done.copy(), done.copy()
        momentum = np.ones(count, np.float32)
        held = np.ones(size, np.float32)
        held[-1] = 0.0
        sizes = problems.folds.sum(axis=0)[problems.fold]
        for iteration in range(_ITERATIONS):
            penalty = problems.penalty[active]
            diagonal = (self._curvature[:, None] + held[:, None] * penalty).astype(np.float32)
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            point = weights + ((momentum - 1) / following)[None, :, None] * (weights - before)
            gradient = self._gradient(point, problems.folds, problems.fold[active])
            gradient += (held[:, None] * penalty)[..., None] * point
            step = gradient / diagonal[..., None]
            before, weights = weights, point - step
            uphill = (gradient * (weights - before)).sum(axis=(0, 2)) > 0
            momentum = np.where(uphill, np.float32(1), following).astype(np.float32)
            if iteration % _CHECK:
                continue
            gain = (gradient * step).sum(axis=(0, 2))
            open_ = gain > _TOLERANCE * sizes[active]
            if not open_.all():
                done[:, active[~open_]] = weights[:, ~open_]
                active, momentum = active[open_], momentum[open_]
                weights, before = weights[:, open_], before[:, open_]
            if not len(active):
                break
        done[:, active] = weights
        return done

    def _gradient(
        self, weights: Floats, folds: NDArray[np.bool_], fold: NDArray[np.int64]
    ) -> Floats:
        """(D + 1, P, K): of the loss on the training rows of each problem."""
        size, count, outputs = weights.shape
        flat = weights.reshape(size, -1)
        total = np.zeros_like(flat)
        for start in range(0, len(self.rows), _ROWS):
            rows = self.rows[start : start + _ROWS]
            labels = self.labels[start : start + _ROWS]
            scores = (rows @ flat).reshape(len(rows), count, outputs)
            _errors(scores, labels)
            scores *= folds[start : start + _ROWS].astype(np.float32)[:, fold, None]
            total += rows.T @ scores.reshape(len(rows), -1)
        return total.reshape(weights.shape)

    def correct(self, weights: Floats) -> NDArray[np.bool_]:
        """(N, P): whether each problem's weights get each row of the data right."""
        found = np.empty((len(self.rows), weights.shape[1]), np.bool_)
        for start in range(0, len(self.rows), _ROWS):
            rows = slice(start, start + _ROWS)
            found[rows] = self._best(self.rows[rows], weights) == self.labels[rows, None]
        return found

    def predict(self, features: NDArray[np.floating], weights: Floats) -> NDArray[np.int64]:
        """(N, P) classes of other rows."""
        return self._best(self._rotated(features), weights)

    @staticmethod
    def _best(rows: Floats, weights: Floats) -> NDArray[np.int64]:
        size, count, outputs = weights.shape
        scores = (rows @ weights.reshape(size, -1)).reshape(len(rows), count, outputs)
        if outputs == 1:
            return (scores[..., 0] > 0).astype(np.int64)
        best: NDArray[np.int64] = scores.argmax(axis=2)
        return best


def _errors(scores: Floats, labels: NDArray[np.int64]) -> None:
    """Turn (N, P, K) scores into probability minus truth, in place."""
    if scores.shape[2] == 1:
        # tanh has a vectorised form in NumPy, the logistic function has none
        scores *= 0.5
        np.tanh(scores, out=scores)
        scores *= 0.5
        scores += (0.5 - labels)[:, None, None].astype(np.float32)
        return
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    scores[np.arange(len(labels)), :, labels] -= 1.0
