"""Who fits the classifiers: the batched solver, scikit-learn, or the network in PyTorch."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rejoinder.evaluation.classifiers.logistic import LogisticGrid, Problems
from rejoinder.evaluation.classifiers.settings import ClassifierSettings

Rows = NDArray[np.int64]
Features = NDArray[np.float32]


class Learner(Protocol):
    """Fits classifiers of rows of one array of features."""

    def held_out(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        grid: Sequence[float],
    ) -> NDArray[np.float64]:
        """(F, G) accuracy, 0 to 1, on the second rows of each fold, trained on the first."""
        ...

    def predict(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        penalties: Sequence[float],
        validation: Rows | None = None,
    ) -> list[Rows]:
        """Classes of the second rows of each fold, trained on the first with that penalty.

        `validation` rows say when to stop where a fit has to be stopped; without them a share
        of the training rows does.
        """
        ...


def open_learner(settings: ClassifierSettings) -> Learner:
    """The learner that settings ask for.

    Raises:
        MissingExtraError: it needs a library that is not installed.
    """
    if settings.nhid > 0 or (settings.mode == "compat" and settings.usepytorch):
        from rejoinder.evaluation.classifiers.network import NetworkLearner

        return NetworkLearner(settings)
    if settings.mode == "compat":
        from rejoinder.evaluation.classifiers.library import LibraryLearner

        return LibraryLearner(settings)
    return FastLearner(settings)


class FastLearner:
    """`LogisticGrid`: all folds and penalties at once."""

    def __init__(self, settings: ClassifierSettings) -> None:
        self._settings = settings
        self._grid: tuple[int, int, LogisticGrid] | None = None

    def _opened(self, features: Features, labels: Rows) -> LogisticGrid:
        """The rotated data; the two calls of a protocol share it."""
        key = (id(features), id(labels))
        if self._grid is None or self._grid[:2] != key:
            self._grid = (*key, LogisticGrid(features, labels))
        return self._grid[2]

    def _penalty(self, strength: float, rows: int, classes: int) -> float:
        if not self._settings.by_decay:
            return 1.0 / strength
        # PyTorch's decay goes with the mean loss; its two vectors of two classes are each half
        # of ours, so that half the decay does the same
        return strength * rows * (0.5 if classes == 2 else 1.0)

    def held_out(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        grid: Sequence[float],
    ) -> NDArray[np.float64]:
        """See `Learner`."""
        solver = self._opened(features, labels)
        fold = np.repeat(np.arange(len(folds)), len(grid))
        strengths = list(grid) * len(folds)
        weights = solver.fit(self._problems(solver, folds, fold, strengths))
        right = solver.correct(weights).reshape(len(labels), len(folds), len(grid))
        return np.stack([right[test, place].mean(axis=0) for place, (_, test) in enumerate(folds)])

    def predict(
        self,
        features: Features,
        labels: Rows,
        folds: Sequence[tuple[Rows, Rows]],
        penalties: Sequence[float],
        validation: Rows | None = None,  # noqa: ARG002 -- nothing here is stopped early
    ) -> list[Rows]:
        """See `Learner`; nothing here needs to be stopped, `validation` is not used."""
        solver = self._opened(features, labels)
        fold = np.arange(len(folds))
        weights = solver.fit(self._problems(solver, folds, fold, penalties))
        return [
            solver.predict(features[test], weights[:, place : place + 1])[:, 0]
            for place, (_, test) in enumerate(folds)
        ]

    def _problems(
        self,
        solver: LogisticGrid,
        folds: Sequence[tuple[Rows, Rows]],
        fold: Rows,
        strengths: Sequence[float],
    ) -> Problems:
        masks = np.zeros((len(solver.labels), len(folds)), np.bool_)
        for place, (train, _) in enumerate(folds):
            masks[train, place] = True
        penalty = [
            self._penalty(strength, len(folds[place][0]), solver.classes)
            for place, strength in zip(fold.tolist(), strengths, strict=True)
        ]
        return Problems(masks, fold, np.array(penalty, np.float32))
