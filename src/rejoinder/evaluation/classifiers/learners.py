"""Learners fit classifiers on rows of features: the batched solver, and scikit-learn's."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import require
from rejoinder.evaluation.classifiers.logistic import LogisticGrid
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures import Indices

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

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """Returns (G, N) predicted classes of the N test rows of each fold, for its G penalties."""
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

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """See `Learner`."""
        masks = np.zeros((len(self._features), len(folds)), np.bool_)
        for index, fold in enumerate(folds):
            masks[fold.train, index] = True
        fold_of = np.repeat(np.arange(len(folds)), [len(each) for each in penalties])
        factors = [
            self._penalty(strength, len(fold.train))
            for fold, strengths in zip(folds, penalties, strict=True)
            for strength in strengths
        ]
        weights = self._solver.fit(masks, fold_of, np.array(factors, np.float32))
        return [
            self._solver.predict(fold.test, weights[..., fold_of == index]).T
            for index, fold in enumerate(folds)
        ]


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

    def predict(self, folds: Sequence[Fold], penalties: Sequence[Sequence[float]]) -> list[Labels]:
        """See `Learner`."""
        return [
            np.stack(
                [self._fitted(fold.train, each).predict(self._features[fold.test]) for each in some]
            )
            for fold, some in zip(folds, penalties, strict=True)
        ]
