"""Who fits the classifiers: the batched solver, scikit-learn, or the network in PyTorch."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluation.classifiers.logistic import LogisticGrid, Problems
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

Rows = NDArray[np.int64]
Features = NDArray[np.float32]
Folds = Sequence[tuple[Rows, Rows]]
"""Rows to train on and rows to predict, a pair a fold."""


class Learner(Protocol):
    """Fits classifiers of rows of the one array of features that it was opened with."""

    def held_out(self, folds: Folds, grid: Sequence[float]) -> NDArray[np.float64]:
        """(F, G) accuracy, 0 to 1, on the second rows of each fold, trained on the first."""
        ...

    def predict(
        self,
        folds: Folds,
        penalties: Sequence[float],
        validation: Rows | None = None,
    ) -> list[Rows]:
        """Classes of the second rows of each fold, trained on the first with that penalty.

        `validation` rows say when to stop where a fit has to be stopped; without them a share
        of the training rows does.
        """
        ...


def open_learner(settings: ClassifierSettings, features: Features, labels: Rows) -> Learner:
    """The learner that settings ask for, of (N, D) features and (N,) labels.

    Raises:
        MissingExtraError: it needs a library that is not installed.
    """
    if settings.classifier == "pytorch":
        from rejoinder.evaluation.classifiers.network import NetworkLearner

        return NetworkLearner(settings, features, labels)
    if settings.classifier == "scikit-learn":
        from rejoinder.evaluation.classifiers.library import LibraryLearner

        return LibraryLearner(settings, features, labels)
    return FastLearner(settings, features, labels)


class FastLearner:
    """`LogisticGrid`: all folds and penalties at once."""

    def __init__(self, settings: ClassifierSettings, features: Features, labels: Rows) -> None:
        self._settings = settings
        self._features = features
        self._solver = LogisticGrid(features, labels)

    def _penalty(self, strength: float, rows: int, classes: int) -> float:
        if not self._settings.by_decay:
            return 1.0 / strength
        # PyTorch's decay goes with the mean loss; its two vectors of two classes are each half
        # of ours, so that half the decay does the same
        return strength * rows * (0.5 if classes == 2 else 1.0)

    def held_out(self, folds: Folds, grid: Sequence[float]) -> NDArray[np.float64]:
        """See `Learner`."""
        solver = self._solver
        fold = np.repeat(np.arange(len(folds)), len(grid))
        strengths = list(grid) * len(folds)
        weights = solver.fit(self._problems(folds, fold, strengths))
        right = solver.correct(weights).reshape(len(solver.labels), len(folds), len(grid))
        return np.stack([right[test, place].mean(axis=0) for place, (_, test) in enumerate(folds)])

    def predict(
        self,
        folds: Folds,
        penalties: Sequence[float],
        validation: Rows | None = None,  # noqa: ARG002 -- nothing here is stopped early
    ) -> list[Rows]:
        """See `Learner`; nothing here needs to be stopped, `validation` is not used."""
        solver = self._solver
        fold = np.arange(len(folds))
        weights = solver.fit(self._problems(folds, fold, penalties))
        return [
            solver.predict(self._features[test], weights[:, place : place + 1])[:, 0]
            for place, (_, test) in enumerate(folds)
        ]

    def _problems(self, folds: Folds, fold: Rows, strengths: Sequence[float]) -> Problems:
        solver = self._solver
        masks = np.zeros((len(solver.labels), len(folds)), np.bool_)
        for place, (train, _) in enumerate(folds):
            masks[train, place] = True
        penalty = [
            self._penalty(strength, len(folds[place][0]), solver.classes)
            for place, strength in zip(fold.tolist(), strengths, strict=True)
        ]
        return Problems(masks, fold, np.array(penalty, np.float32))
