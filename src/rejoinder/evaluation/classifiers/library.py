"""scikit-learn's logistic regression, one fold and penalty after another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.learners import Features, Fold, Labels
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures import Floats, Indices

try:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
except ImportError:
    raise MissingExtraError("scikit-learn", "eval") from None


class LibraryLearner:
    """SentEval's classifier without PyTorch. It does not stop early.

    SentEval used scikit-learn's default solver of its time, liblinear with one class against the
    rest. Today's default is another, so the solver is named here.
    """

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Labels) -> None:
        self._settings, self._features, self._labels = settings, features, labels

    def _fitted(self, rows: Indices, strength: float) -> Any:
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
