"""Fits classifiers on rows of features, and defines their settings under SentEval's names.

`fast` is logistic regression, solved for all folds and penalties of a grid at once by batched
matrix products. A problem is a set of training rows and a penalty. All problems share the data, so
an iteration for all of them is two matrix products. Each iteration minimises an upper bound of the
objective with the fixed curvature c·X'X + penalty (Böhning and Lindsay 1988; c is 1/4 for two
classes, 1/2 for more), in the basis in which X'X is diagonal. Nesterov's momentum with restarts
(O'Donoghue and Candès 2015) speeds this up. There is no line search and no step size.

Graded scores are predicted through a distribution over whole grades, as in SentEval: a softmax over
the grades is trained on the squared error, and the prediction is its mean grade (Tai et al. 2015,
§4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from rejoinder.errors import InputError, nearest, require
from rejoinder.measures import Floats, Indices, spearman_correlation

MODES = ("fast", "compat")
PUBLISHED_FOLDS = 1111
"""The seed of SentEval's folds of MR, CR, SUBJ and MPQA. SentEval's `seed` does not change it."""
NETWORK_KEYS = ("optim", "batch_size", "tenacity", "epoch_size", "max_epoch", "dropout")
"""Settings that only the PyTorch network uses."""

_LEAST = {"kfold": 2, "seed": 0, "nhid": 0, "batch_size": 1, "tenacity": 0, "epoch_size": 1,
          "max_epoch": 0}  # fmt: skip


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings of the classifiers that an evaluation trains.

    Raises:
        InputError: a value is out of its range.
    """

    mode: str = "fast"
    """`fast` uses a solver that reaches the optimum; `compat` trains as SentEval does."""
    usepytorch: bool = False
    """Whether `compat` uses SentEval's PyTorch or its scikit-learn classifier. Each has its own
    grid of penalties."""
    kfold: int = 10
    seed: int = 1111
    """Seed of the folds (see `fold_seed`), of the initial weights of networks and of batches."""
    nhid: int = 0
    """Number of hidden units; 0 means logistic regression."""
    optim: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    """Number of evaluations without improvement after which training stops."""
    epoch_size: int = 4
    """Number of epochs per evaluation."""
    max_epoch: int = 200
    dropout: float = 0.0
    noreg: bool = False
    """Whether to use a single negligible penalty instead of a grid, as SentEval does on SNLI."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"classifier mode {self.mode!r}: {nearest(self.mode, MODES)}.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or not least <= value < 1 << 32:
                needed = f"an integer of at least {least} and below 2^32"
                raise InputError(f"classifier: {name} is {value!r}; {needed} is needed.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"classifier: dropout is {self.dropout!r}; 0 to below 1 is needed.")

    def grid(self, protocol: str) -> tuple[float, ...]:
        """Returns the penalties of a protocol: scikit-learn's C, or PyTorch's weight decay.

        As in SentEval's validation.py, C is 2^-2 to 2^3 for `nested` and `split`, and 2^-1 to 2^5
        for `kfold`. Weight decay is 10^-5 to 10^-2 for all three.
        """
        if self.by_decay:
            return (1e-9,) if self.noreg else (1e-5, 1e-4, 1e-3, 1e-2)
        if self.noreg:
            return (1e9,)
        low, high = (-1, 5) if protocol == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def fold_seed(self, protocol: str) -> int:
        """Returns the seed of the folds of `nested` or `kfold`.

        In SentEval's validation.py, and so in `compat`, the folds of `nested` are the same for
        every seed.
        """
        return PUBLISHED_FOLDS if protocol == "nested" and self.mode == "compat" else self.seed

    @property
    def classifier(self) -> str:
        """The implementation of classifiers: `fast`, `scikit-learn` or `pytorch`."""
        if self.nhid > 0 or (self.mode == "compat" and self.usepytorch):
            return "pytorch"
        return "scikit-learn" if self.mode == "compat" else "fast"

    @property
    def regressor(self) -> str:
        """The implementation of regressions: `fast`, or `pytorch` in `compat`, as in SentEval."""
        return "pytorch" if self.mode == "compat" else "fast"

    def describe(self, protocol: str) -> dict[str, Any]:
        """Returns the settings that affect a protocol of `Family`, as plain values for results.

        >>> ClassifierSettings(mode="compat").describe("split")["classifier"]
        'scikit-learn'
        """
        if protocol == "retrieval":
            return {"classifier": "pytorch", "mode": self.mode, "seed": self.seed}
        if protocol == "regression":
            seed = {"seed": self.seed} if self.regressor == "pytorch" else {}
            return {"classifier": self.regressor, "mode": self.mode, **seed}
        described: dict[str, Any] = {"classifier": self.classifier, "mode": self.mode}
        described |= {"nhid": self.nhid, "penalties": list(self.grid(protocol))}
        if protocol != "split":
            described |= {"kfold": self.kfold, "fold_seed": self.fold_seed(protocol)}
        if self.classifier == "pytorch":
            described |= {"seed": self.seed, **{name: getattr(self, name) for name in NETWORK_KEYS}}
        return described

    @property
    def by_decay(self) -> bool:
        """Whether penalties are weight decays, as for PyTorch's classifier and all networks."""
        return self.usepytorch or self.nhid > 0


Labels = NDArray[np.int64]
"""The class of each row, from 0."""
Features = NDArray[np.float32]


class Fold(NamedTuple):
    """Rows of a learner's features to train on, and rows to predict."""

    train: Indices
    test: Indices
    stop: Indices | None = None
    """Rows whose accuracy decides when to stop, for learners that stop early. If None, a share
    of the training rows is used."""


class Learner(Protocol):
    """Fits classifiers on rows of its features."""

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """Returns (G, N) predicted classes of the N test rows of each fold, for its G penalties."""
        ...


class FastLearner:
    """Fits all folds and penalties at once with `LogisticGrid`. It does not stop early."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        self._settings = settings
        self._solver = LogisticGrid(features, labels)

    def _penalty(self, strength: float, rows: int) -> float:
        """Returns a setting's penalty as the factor of half the squared weights."""
        if not self._settings.by_decay:
            return 1.0 / strength
        # PyTorch's decay is relative to the mean loss. Its two weight vectors of two classes are
        # each half of our single vector, so half the decay has the same effect.
        return strength * rows * (0.5 if self._solver.classes == 2 else 1.0)

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """See `Learner`."""
        masks = np.zeros((len(self._solver.rows), len(folds)), np.bool_)
        for index, fold in enumerate(folds):
            masks[fold.train, index] = True
        fold_of = np.repeat(np.arange(len(folds)), [len(each) for each in penalties])
        factors = [
            self._penalty(strength, len(fold.train))
            for fold, strengths in zip(folds, penalties, strict=True)
            for strength in strengths
        ]
        weights = self._solver.fit(masks, fold_of, np.array(factors, np.float32))
        parts = [weights[..., fold_of == index] for index in range(len(folds))]
        predict = self._solver.predict
        return [predict(fold.test, part).T for fold, part in zip(folds, parts, strict=True)]


class LibraryLearner:
    """SentEval's classifier without PyTorch. It does not stop early.

    SentEval used scikit-learn's default solver of the time, liblinear with one class against the
    rest. Today's default differs, so the solver is set explicitly.
    """

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        require("eval", "sklearn")
        self._settings, self._features, self._labels = settings, features, labels

    def _fitted(self, rows: Indices, strength: float) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        options = {"random_state": self._settings.seed, "solver": "liblinear", "max_iter": 100}
        model = LogisticRegression(C=strength, **options)
        labels = self._labels[rows]
        if len(np.unique(labels)) > 2:
            model = OneVsRestClassifier(model)
        return model.fit(self._features[rows], labels)

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """See `Learner`."""
        return [
            np.stack(
                [self._fitted(fold.train, each).predict(self._features[fold.test]) for each in some]
            )
            for fold, some in zip(folds, penalties, strict=True)
        ]


Float32s = NDArray[np.float32]

_ROWS = 512
"""Rows per matrix product, so that their scores for all problems fit in the cache of a core."""
_TOLERANCE = 1e-7
"""A problem is solved when the predicted gain of a step, per training row, is at most this."""
_ITERATIONS = 1_000
"""Maximum number of iterations."""
_CHECK = 5
"""Number of iterations between two tolerance checks."""


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
        # the last feature is 1 everywhere, for the intercept
        self._curvature = bound * np.append(np.maximum(curvature, 0.0), len(features))

    def fit(self, folds: NDArray[np.bool_], fold: Indices, penalties: Float32s) -> Float32s:
        """Returns (D + 1, K, P) weights in the rotated basis; K is 1 if there are two classes.

        Args:
            folds: (N, F) bool: whether a row is a training row of a fold.
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
        size, outputs, count = weights.shape
        predicted = np.empty((len(rows), count), np.int64)
        for start in range(0, len(rows), _ROWS):
            part = self.rows[rows[start : start + _ROWS]]
            scores = (part @ weights.reshape(size, -1)).reshape(len(part), outputs, count)
            best = scores[:, 0] > 0 if outputs == 1 else scores.argmax(axis=1)
            predicted[start : start + _ROWS] = best
        return predicted


def _errors(scores: Float32s, labels: NDArray[np.int64]) -> None:
    """Turns (N, K, P) scores into predicted minus true probabilities, in place."""
    if scores.shape[1] == 1:
        # the logistic function written with tanh, which is vectorised in NumPy
        scores *= 0.5
        np.tanh(scores, out=scores)
        scores *= 0.5
        scores += (0.5 - labels)[:, None, None].astype(np.float32)
        return
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(labels)), labels] -= 1.0


_PENALTIES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""Factors of half the squared weights in the objective, from strong to weak. Each solution is
the starting point of the next."""
_GRADE_ITERATIONS = 50


@dataclass(frozen=True)
class Graded:
    """(N, F) features of the pairs of a split, and their (N,) gold scores."""

    features: Features
    gold: Floats


def grade_distribution(scores: Floats, low: int, high: int) -> Floats:
    """Returns (N, high - low + 1) distributions over grades whose means are the (N,) scores.

    The two grades next to a score share a weight of 1. SentEval has grades 1 to 5 only, so
    its distributions are wrong for scores below 1 in the STS Benchmark; here they are right.

    >>> grade_distribution(np.array([0.25, 5.0]), 0, 5).tolist()
    [[0.75, 0.25, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    grades = np.arange(low, high + 1)
    shares: Floats = np.clip(1 - np.abs(np.asarray(scores)[:, None] - grades), 0, 1)
    return shares


def fit_grades(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Fits a model of grades by L-BFGS, and returns the mean grades of dev and test.

    Dev chooses the penalty by Spearman's rho.
    """
    values = np.arange(grades[0], grades[1] + 1)
    target = grade_distribution(train.gold, *grades)
    center = train.features.mean(axis=0, dtype=np.float64).astype(np.float32)
    # one penalty for all features needs features of the same scale
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
        # rho of equal predictions is undefined; they count as worse than any order
        rho = spearman_correlation(on_dev, dev.gold) if np.ptp(on_dev) > 0 else -1.0
        if rho > best:
            best, related = rho, (on_dev, _mean_grade(rows[2], weights, values))
    return related


def _mean_grade(rows: Features, weights: Floats, values: NDArray[np.int64]) -> Floats:
    grades: Floats = softmax((rows @ weights.astype(np.float32)).astype(np.float64), axis=1)
    return grades @ values


def _minimum(rows: Features, target: Floats, penalty: float, start: Floats) -> Floats:
    """Returns (D + 1, K) weights of the least squared error. The intercept has no penalty."""
    from scipy.optimize import minimize  # takes a third of a second, and few tasks need it

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

    options = {"maxiter": _GRADE_ITERATIONS, "maxcor": 20, "gtol": 1e-7, "ftol": 1e-10}
    # NumPy's and SciPy's threads would wait for each other: two take twice as long as one
    with threadpool_limits(1, user_api="blas"):
        result = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    solution: Floats = result.x.reshape(start.shape)
    return solution
