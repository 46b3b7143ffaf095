"""SentEval's three ways of choosing a penalty and scoring a classifier (its validation.py)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.learners import Features, Fold, Labels, open_learner
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures.arrays import Floats, Indices
from rejoinder.measures.correlation import ScoringError


@dataclass(frozen=True)
class Outcome:
    """Accuracies and predictions of a classifier."""

    dev_accuracy: float
    """In percent, on the rows that the penalty was chosen on."""
    test_accuracy: float
    """In percent; for `nested` the mean over folds."""
    predictions: Labels
    """(N,) predicted classes of the test rows; for `nested`, those of each row from the fold that
    held it out."""
    folds: Indices | None = None
    """(N,) the fold that held each row out, for `nested`."""


def _folds(labels: Labels, settings: ClassifierSettings, protocol: str) -> list[Fold]:
    """Returns stratified folds of all rows.

    Raises:
        ScoringError: a class has fewer rows than there are folds.
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.model_selection import StratifiedKFold
    except ImportError:
        raise MissingExtraError("scikit-learn", "eval") from None
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


def _best(accuracy: Floats) -> tuple[Any, Any]:
    """Returns the index of the best of the last axis, and its value in percent.

    Accuracies are compared after rounding to two digits, as in the original.

    Args:
        accuracy: (…, G) mean accuracies of G penalties, 0 to 1.

    Returns:
        Two arrays of shape (…).
    """
    rounded = np.round(100 * accuracy, 2)
    return rounded.argmax(axis=-1), rounded.max(axis=-1)


def nested(features: Features, labels: Labels, settings: ClassifierSettings) -> Outcome:
    """Cross-validates, with the penalty of each fold chosen on folds of its training rows.

    For data without published splits: MR, CR, SUBJ, MPQA.

    Args:
        features: (N, D) float32.
        labels: (N,) int64.
        settings: how classifiers are trained.

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
    learner, grid = open_learner(settings, features, labels), settings.grid("nested")
    accuracy = learner.held_out(inner, grid)
    means = accuracy.reshape(len(outer), settings.kfold, len(grid)).mean(axis=1)
    chosen, dev = _best(means)
    predicted = learner.predict(outer, [grid[index] for index in chosen])
    predictions, folds = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    scores = []
    for index, (fold, classes) in enumerate(zip(outer, predicted, strict=True)):
        predictions[fold.test], folds[fold.test] = classes, index
        scores.append(_percent(classes, labels[fold.test]))
    accuracy_of_folds = round(float(np.mean(scores)), 2)
    return Outcome(round(float(dev.mean()), 2), accuracy_of_folds, predictions, folds)


def kfold(
    train: Features,
    train_labels: Labels,
    test: Features,
    test_labels: Labels,
    settings: ClassifierSettings,
) -> Outcome:
    """Chooses the penalty on folds of the train split, and predicts the test split.

    For data without a dev split: TREC, MRPC.

    Args:
        train: (N, D) float32.
        train_labels: (N,) int64.
        test: (M, D) float32.
        test_labels: (M,) int64.
        settings: how classifiers are trained.

    Raises:
        ScoringError: a class has fewer rows than there are folds.
        MissingExtraError: a library that is needed is not installed.
    """
    features = np.concatenate([train, test])
    labels = np.concatenate([train_labels, test_labels])
    inner = _folds(train_labels, settings, "kfold")
    learner, grid = open_learner(settings, features, labels), settings.grid("kfold")
    index, dev = _best(learner.held_out(inner, grid).mean(axis=0))
    rows = np.arange(len(labels))
    whole = Fold(rows[: len(train)], rows[len(train) :])
    [predictions] = learner.predict([whole], [grid[index]])
    return Outcome(float(dev), _percent(predictions, test_labels), predictions)


def split(
    features: tuple[Features, Features, Features],
    labels: tuple[Labels, Labels, Labels],
    settings: ClassifierSettings,
) -> Outcome:
    """Chooses the penalty on the dev split, and predicts the test split.

    For data with published splits: SST, SICK-E, SNLI, probing.

    Args:
        features: (N, D) float32 of train, dev and test.
        labels: (N,) int64 of train, dev and test.
        settings: how classifiers are trained.

    Raises:
        MissingExtraError: a library that is needed is not installed.
    """
    sizes = np.cumsum([len(part) for part in features])
    train, dev, test = np.split(np.arange(sizes[-1]), sizes[:-1])
    learner = open_learner(settings, np.concatenate(features), np.concatenate(labels))
    grid = settings.grid("split")
    index, best = _best(learner.held_out([Fold(train, dev)], grid)[0])
    [predictions] = learner.predict([Fold(train, test, stop=dev)], [grid[index]])
    return Outcome(float(best), _percent(predictions, labels[2]), predictions)


def _percent(predictions: Labels, labels: Labels) -> float:
    return round(100 * float((predictions == labels).mean()), 2)
