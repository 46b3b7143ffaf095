"""Learners fit classifiers on rows of features: the batched solver, and scikit-learn's."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import require
from rejoinder.evaluation.classifiers.logistic import Float32s, LogisticGrid
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures import Floats, Indices

Labels = NDArray[np.int64]
"""The class of each row, from 0."""
Features = NDArray[np.float32]


class Fold(NamedTuple):
    """Rows of the features of a learner: which are trained on, and which are predicted."""

    train: Indices
    test: Indices
    stop: Indices | None = None
    """Rows whose accuracy says when to stop training, for learners that stop early. With None, a
    share of the training rows is used."""


class Learner(Protocol):
    """Fits classifiers on rows of the features that it was opened with."""

    def held_out(self, folds: Sequence[Fold], grid: Sequence[float]) -> Floats:
        """Returns (F, G) accuracies from 0 to 1 of G penalties on the test rows of F folds.

        Learners that stop early stop by the test rows.
        """
        ...

    def predict(self, folds: Sequence[Fold], penalties: Sequence[float]) -> list[Labels]:
        """Returns the predicted classes of the test rows of each fold, each with its penalty."""
        ...


class FastLearner:
    """Fits all folds and penalties at once with `LogisticGrid`. It does not stop early."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        self._settings = settings
        self._features = features
        self._solver = LogisticGrid(features, labels)

    def _penalty(self, strength: float, rows: int) -> float:
        """Returns a setting's penalty as the factor of half the squared weights."""
        if not self._settings.by_decay:
            return 1.0 / strength
        # PyTorch's decay is relative to the mean loss. Its two weight vectors of two classes are
        # each half of our single vector, so half the decay has the same effect.
        return strength * rows * (0.5 if self._solver.classes == 2 else 1.0)

    def held_out(self, folds: Sequence[Fold], grid: Sequence[float]) -> Floats:
        """See `Learner`."""
        fold_of = np.repeat(np.arange(len(folds)), len(grid))
        weights = self._fitted(folds, fold_of, list(grid) * len(folds))
        right = self._solver.correct(weights).reshape(-1, len(folds), len(grid))
        return np.stack([right[fold.test, index].mean(axis=0) for index, fold in enumerate(folds)])

    def predict(self, folds: Sequence[Fold], penalties: Sequence[float]) -> list[Labels]:
        """See `Learner`."""
        weights = self._fitted(folds, np.arange(len(folds)), penalties)
        return [
            self._solver.predict(self._features[fold.test], weights[:, index : index + 1])[:, 0]
            for index, fold in enumerate(folds)
        ]

    def _fitted(
        self, folds: Sequence[Fold], fold_of: Indices, strengths: Sequence[float]
    ) -> Float32s:
        masks = np.zeros((len(self._features), len(folds)), np.bool_)
        for index, fold in enumerate(folds):
            masks[fold.train, index] = True
        penalties = [
            self._penalty(strength, len(folds[index].train))
            for index, strength in zip(fold_of.tolist(), strengths, strict=True)
        ]
        return self._solver.fit(masks, fold_of, np.array(penalties, np.float32))


class LibraryLearner:
    """SentEval's classifier without PyTorch. It does not stop early.

    SentEval used scikit-learn's default solver of its time, liblinear with one class against the
    rest. Today's default is another, so the solver is named here.
    """

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        require("eval", "sklearn")
        self._settings, self._features, self._labels = settings, features, labels

    def _fitted(self, rows: Indices, strength: float) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        model = LogisticRegression(
            C=strength, random_state=self._settings.seed, solver="liblinear", max_iter=100
        )
        labels = self._labels[rows]
        if len(np.unique(labels)) > 2:
            model = OneVsRestClassifier(model)
        return model.fit(self._features[rows], labels)

    def held_out(self, folds: Sequence[Fold], grid: Sequence[float]) -> Floats:
        """See `Learner`."""
        accuracies = np.empty((len(folds), len(grid)))
        for row, fold in enumerate(folds):
            features, labels = self._features[fold.test], self._labels[fold.test]
            accuracies[row] = [self._fitted(fold.train, c).score(features, labels) for c in grid]
        return accuracies

    def predict(self, folds: Sequence[Fold], penalties: Sequence[float]) -> list[Labels]:
        """See `Learner`."""
        return [
            np.asarray(self._fitted(fold.train, strength).predict(self._features[fold.test]))
            for fold, strength in zip(folds, penalties, strict=True)
        ]
