"""scikit-learn's logistic regression, fitted one fold and penalty after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.learners import Features, Folds, Rows
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

try:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
except ImportError:
    raise MissingExtraError("scikit-learn", "eval") from None


class LibraryLearner:
    """What SentEval runs without PyTorch.

    In its day the default was liblinear, one class against the rest; it is named here.
    """

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Rows) -> None:
        self._settings, self._features, self._labels = settings, features, labels

    def _fitted(self, rows: Rows, strength: float) -> Any:
        model = LogisticRegression(
            C=strength, random_state=self._settings.seed, solver="liblinear", max_iter=100
        )
        labels = self._labels[rows]
        if len(np.unique(labels)) > 2:
            model = OneVsRestClassifier(model)
        return model.fit(self._features[rows], labels)

    def held_out(self, folds: Folds, grid: Sequence[float]) -> NDArray[np.float64]:
        """See `Learner`."""
        found = [
            [
                self._fitted(train, strength).score(self._features[test], self._labels[test])
                for strength in grid
            ]
            for train, test in folds
        ]
        return np.array(found)

    def predict(
        self,
        folds: Folds,
        penalties: Sequence[float],
        validation: Rows | None = None,  # noqa: ARG002 -- nothing here is stopped early
    ) -> list[Rows]:
        """See `Learner`."""
        return [
            np.asarray(self._fitted(train, strength).predict(self._features[test]))
            for (train, test), strength in zip(folds, penalties, strict=True)
        ]
