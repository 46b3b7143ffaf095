"""Logistic regression for all folds and penalties of a grid at once, by batched matrix products.

A problem is a set of training rows and a penalty. All problems share the data, so that one
iteration for all of them is two matrix products. Each iteration minimises an upper bound of the
objective that has the fixed curvature c·X'X + penalty (Böhning and Lindsay 1988; c is 1/4 for two
classes, 1/2 for more), in the basis in which X'X is diagonal. Nesterov's momentum with restarts
(O'Donoghue and Candès 2015) speeds this up. There is no line search and no step size.
"""

import numpy as np
from numpy.typing import NDArray

from rejoinder.measures import Indices

Float32s = NDArray[np.float32]

_ROWS = 512
"""Rows per matrix product, so that their scores for all problems stay in the cache of a core."""
_TOLERANCE = 1e-7
"""A problem is solved when the predicted gain of a step, per training row, is at most this."""
_ITERATIONS = 1_000
"""Maximum number of iterations."""
_CHECK = 5
"""Number of iterations between two tests of the tolerance."""


class LogisticGrid:
    """Fits all problems on one array of features.

    Two classes have a single vector of weights. More classes have K vectors, all penalised, as
    in scikit-learn. Intercepts are not penalised.
    """

    def __init__(self, features: NDArray[np.floating], labels: NDArray[np.int64]) -> None:
        """Rotates (N, D) finite features so that their Gram matrix is diagonal.

        `labels` are (N,) classes, 0 to K - 1.
        """
        self.labels = labels
        self.classes = int(labels.max()) + 1
        self._outputs = 1 if self.classes == 2 else self.classes
        center = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        centered = features.astype(np.float32, copy=False) - center
        gram = (centered.T @ centered).astype(np.float64)
        curvature, basis = np.linalg.eigh(gram)
        self.rows = np.ones((len(centered), len(basis) + 1), np.float32)
        np.matmul(centered, basis.astype(np.float32), out=self.rows[:, :-1])
        bound = 0.25 if self.classes == 2 else 0.5
        # the last feature is the intercept's, which is 1 everywhere
        self._curvature = bound * np.append(np.maximum(curvature, 0.0), len(features))

    def fit(self, folds: NDArray[np.bool_], fold: Indices, penalties: Float32s) -> Float32s:
        """Returns (D + 1, K, P) weights in the rotated basis; K is 1 if there are two classes.

        Args:
            folds: (N, F) whether a row is a training row of a fold.
            fold: (P,) the fold of each problem.
            penalties: (P,) the factor of half the squared weights; the inverse of scikit-learn's C.
        """
        count, size = len(fold), self.rows.shape[1]
        done = np.zeros((size, self._outputs, count), np.float32)
        active = np.arange(count)
        weights, before = done.copy(), done.copy()
        momentum = np.ones(count, np.float32)
        penalised = np.ones(size, np.float32)
        penalised[-1] = 0.0
        sizes = folds.sum(axis=0)[fold]
        for iteration in range(_ITERATIONS):
            penalty = penalties[active]
            diagonal = (self._curvature[:, None] + penalised[:, None] * penalty).astype(np.float32)
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            point = weights + ((momentum - 1) / next_momentum) * (weights - before)
            gradient = self._gradient(point, folds, fold[active])
            gradient += (penalised[:, None] * penalty)[:, None] * point
            step = gradient / diagonal[:, None]
            before, weights = weights, point - step
            uphill = (gradient * (weights - before)).sum(axis=(0, 1)) > 0
            momentum = np.where(uphill, np.float32(1), next_momentum).astype(np.float32)
            if iteration % _CHECK:
                continue
            gain = (gradient * step).sum(axis=(0, 1))
            unsolved = gain > _TOLERANCE * sizes[active]
            if not unsolved.all():
                done[..., active[~unsolved]] = weights[..., ~unsolved]
                active, momentum = active[unsolved], momentum[unsolved]
                weights, before = weights[..., unsolved], before[..., unsolved]
            if not len(active):
                break
        done[..., active] = weights
        return done

    def _gradient(self, weights: Float32s, folds: NDArray[np.bool_], fold: Indices) -> Float32s:
        """Returns (D + 1, K, P): the gradient of the loss on the training rows of each problem."""
        size, outputs, count = weights.shape
        flat = weights.reshape(size, -1)
        total = np.zeros_like(flat)
        for start in range(0, len(self.rows), _ROWS):
            rows = self.rows[start : start + _ROWS]
            labels = self.labels[start : start + _ROWS]
            scores = (rows @ flat).reshape(len(rows), outputs, count)
            _errors(scores, labels)
            scores *= folds[start : start + _ROWS].astype(np.float32)[:, None, fold]
            total += rows.T @ scores.reshape(len(rows), -1)
        return total.reshape(weights.shape)

    def predict(self, rows: Indices, weights: Float32s) -> NDArray[np.int64]:
        """Returns (N, P) predicted classes of N rows of the features, by weights of `fit`."""
        predicted = np.empty((len(rows), weights.shape[2]), np.int64)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            predicted[part] = self._best(self.rows[rows[part]], weights)
        return predicted

    @staticmethod
    def _best(rows: Float32s, weights: Float32s) -> NDArray[np.int64]:
        size, outputs, count = weights.shape
        scores = (rows @ weights.reshape(size, -1)).reshape(len(rows), outputs, count)
        if outputs == 1:
            return (scores[:, 0] > 0).astype(np.int64)
        best: NDArray[np.int64] = scores.argmax(axis=1)
        return best


def _errors(scores: Float32s, labels: NDArray[np.int64]) -> None:
    """Turns (N, K, P) scores into predicted minus true probabilities, in place."""
    if scores.shape[1] == 1:
        # the logistic function by way of tanh, which is vectorised in NumPy
        scores *= 0.5
        np.tanh(scores, out=scores)
        scores *= 0.5
        scores += (0.5 - labels)[:, None, None].astype(np.float32)
        return
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(labels)), labels] -= 1.0
