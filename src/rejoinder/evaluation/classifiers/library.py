"""scikit-learn's logistic regression, fitted one fold and penalty after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluation.classifiers.learners import Features, Rows
from rejoinder.evaluation.classifiers.settings import ClassifierSettings


class LibraryLearner:
    """What SentEval runs without PyTorch.

    In its day the default was liblinear, one class against the rest; it is named here.
    """

    def __init__(self, settings: ClassifierSettings) -> None:
        self._settings = settings

    def _fitted(self, features: Features, labels: Rows, strength: float) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        model = LogisticRegression(
            C=strength, random_state=self._settings.seed, solver="liblinear", max_iter=100
        )
        if len(np.unique(labels)) > 2:
            model = OneVsRestClassifier(model)
        return model.fit(features, labels)

    def held_out(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        grid: Sequence[float],
    ) -> NDArray[np.float64]:
        """See `Learner`."""
        found = [
            [
                self._fitted(features[train], labels[train], strength).score(
                    features[test], labels[test]
                )
                for strength in grid
            ]
            for train, test in folds
        ]
        return np.array(found)

    def predict(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        penalties: Sequence[float],
        validation: Rows | None = None,  # noqa: ARG002 -- nothing here is stopped early
    ) -> list[Rows]:
        """See `Learner`."""
        return [
            np.asarray(
                self._fitted(features[train], labels[train], strength).predict(features[test])
            )
            for (train, test), strength in zip(folds, penalties, strict=True)
        ]
