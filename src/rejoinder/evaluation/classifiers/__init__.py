"""Classifiers on frozen embeddings: SentEval's three ways of choosing a penalty and scoring."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.errors import require
from rejoinder.evaluation.classifiers.learners import (
    ClassifierSettings,
    FastLearner,
    Features,
    Fold,
    Graded,
    Labels,
    Learner,
    LibraryLearner,
    fit_grades,
)
from rejoinder.measures import Floats, Indices, ScoringError


@dataclass(frozen=True)
class Outcome:
    """Accuracies in percent, and predictions, of a classifier."""

    dev_accuracy: float
    """On the rows that the penalty was chosen on."""
    test_accuracy: float
    """The mean over folds if `nested`."""
    predictions: Labels
    """(N,) predicted classes of the test rows; for `nested`, those of each row from the fold that
    held it out."""
    folds: Indices | None = None
    """(N,) the fold that held each row out, for `nested`."""


def _folds(labels: Labels, settings: ClassifierSettings, protocol: str) -> list[Fold]:
    """Returns stratified folds of all rows."""
    require("eval", "sklearn")
    from sklearn.model_selection import StratifiedKFold

    rarest = int(np.bincount(labels)[np.unique(labels)].min())
    if settings.kfold > rarest:
        raise ScoringError(
            f"kfold is {settings.kfold}, but the rarest class has only {rarest} of the "
            f"{len(labels):,} rows, and every fold needs a row of each class. Use at most "
            f"{rarest} folds."
        )
    splitter = StratifiedKFold(
        n_splits=settings.kfold, shuffle=True, random_state=settings.fold_seed(protocol)
    )
    return [Fold(*rows) for rows in splitter.split(np.zeros(len(labels)), labels)]


def _opened(settings: ClassifierSettings, features: Features, labels: Labels) -> Learner:
    """Returns the learner that the settings ask for, of (N, D) features and (N,) labels."""
    if settings.classifier == "pytorch":
        from rejoinder.evaluation.classifiers.network import NetworkLearner

        return NetworkLearner(settings, features, labels)
    kind = LibraryLearner if settings.classifier == "scikit-learn" else FastLearner
    return kind(settings, features, labels)


def _held_out(
    learner: Learner, folds: Sequence[Fold], grid: Sequence[float], labels: Labels
) -> Floats:
    """Returns (F, G) accuracies from 0 to 1 of G penalties on the test rows of F folds.

    As in SentEval, the test rows also say when to stop.
    """
    predicted = learner.predict([fold._replace(stop=fold.test) for fold in folds],
                                [grid] * len(folds))  # fmt: skip
    return np.stack(
        [
            (classes == labels[fold.test]).mean(axis=1)
            for fold, classes in zip(folds, predicted, strict=True)
        ]
    )


def _best(accuracy: Floats) -> tuple[Any, Any]:
    """Returns the index and the accuracy, in percent, of the best penalty of the last axis."""
    # as in the original, accuracies are rounded before they are compared
    rounded = np.round(100 * accuracy, 2)
    return rounded.argmax(axis=-1), rounded.max(axis=-1)


def nested(features: Features, labels: Labels, settings: ClassifierSettings) -> Outcome:
    """Cross-validates (N, D) features, with the penalty of each fold chosen within its train rows.

    For data without published splits: MR, CR, SUBJ, MPQA.

    Raises:
        ScoringError: a class has fewer rows than there are folds.
        MissingExtraError: a library that is needed is not installed.
    """
    outer = _folds(labels, settings, "nested")
    inner = [
        Fold(fold.train[part.train], fold.train[part.test])
        for fold in outer
        for part in _folds(labels[fold.train], settings, "nested")
    ]
    learner, grid = _opened(settings, features, labels), settings.grid("nested")
    accuracy = _held_out(learner, inner, grid, labels)
    means = accuracy.reshape(len(outer), settings.kfold, len(grid)).mean(axis=1)
    chosen, dev = _best(means)
    predicted = learner.predict(outer, [[grid[index]] for index in chosen])
    predictions, folds = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    scores = []
    for index, (fold, [classes]) in enumerate(zip(outer, predicted, strict=True)):
        predictions[fold.test], folds[fold.test] = classes, index
        scores.append(_percent(classes, labels[fold.test]))
    accuracy_of_folds = round(float(np.mean(scores)), 2)
    return Outcome(round(float(dev.mean()), 2), accuracy_of_folds, predictions, folds)


def split(
    features: Sequence[Features], labels: Sequence[Labels], settings: ClassifierSettings
) -> Outcome:
    """Chooses the penalty on the dev split, or without one on folds of train, and predicts test.

    `features`, (N, D) each, and `labels` are of train, dev and test (SST, SICK-E, SNLI, probing),
    or of train and test (TREC, MRPC).

    Raises:
        ScoringError: without dev, a class has fewer train rows than there are folds.
        MissingExtraError: a library that is needed is not installed.
    """
    ends = np.cumsum([len(part) for part in features])
    train, *dev, test = np.split(np.arange(ends[-1]), ends[:-1])
    protocol = "split" if dev else "kfold"
    folds = [Fold(train, *dev)] if dev else _folds(labels[0], settings, protocol)
    together, grid = np.concatenate(labels), settings.grid(protocol)
    learner = _opened(settings, np.concatenate(features), together)
    index, best = _best(_held_out(learner, folds, grid, together).mean(axis=0))
    [[predictions]] = learner.predict([Fold(train, test, *dev)], [[grid[index]]])
    return Outcome(float(best), _percent(predictions, labels[-1]), predictions)


def _percent(predictions: Labels, labels: Labels) -> float:
    return round(100 * float((predictions == labels).mean()), 2)


def fit_relatedness(
    train: Graded, dev: Graded, test: Graded, grades: tuple[int, int], settings: ClassifierSettings
) -> tuple[Floats, Floats]:
    """Fits a model of grades on train, and returns the mean grades of dev and test.

    Dev chooses the penalty by Spearman's rho (`fast`), or when to stop by Pearson's r (`compat`, as
    in SentEval). In `compat`, the order of train affects the batches.

    Raises:
        MissingExtraError: `compat` needs PyTorch, which is not installed.
    """
    if settings.mode != "compat":
        return fit_grades(train, dev, test, grades)
    from rejoinder.evaluation.classifiers import network

    return network.fit_grades(train, dev, test, grades, settings)
