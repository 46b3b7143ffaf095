"""SentEval's three ways of choosing a penalty and scoring a classifier (its validation.py)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import MissingExtraError
from rejoinder.evaluation.classifiers.learners import Features, Rows, open_learner
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.measures.correlation import ScoringError


@dataclass(frozen=True)
class Outcome:
    """What a classifier got right."""

    dev_accuracy: float
    """In percent: of the penalty that was chosen, where it was chosen."""
    test_accuracy: float
    """In percent; of `nested` the mean over folds."""
    predictions: Rows
    """(N,) classes of the test rows; of `nested` each row's from the fold that held it out."""
    folds: Rows | None = None
    """(N,) the fold that held each row out, of `nested`."""


def _folds(labels: Rows, settings: ClassifierSettings, protocol: str) -> list[tuple[Rows, Rows]]:
    try:
        from sklearn.model_selection import StratifiedKFold
    except ImportError:
        raise MissingExtraError("scikit-learn", "eval") from None
    rarest = int(np.bincount(labels)[np.unique(labels)].min())
    if settings.kfold > rarest:
        raise ScoringError(
            f"kfold is {settings.kfold}, and {len(labels):,} rows to be folded hold only {rarest} "
            f"of a class; every fold needs one of each: {rarest} folds at the most."
        )
    splitter = StratifiedKFold(
        n_splits=settings.kfold, shuffle=True, random_state=settings.fold_seed(protocol)
    )
    return list(splitter.split(np.zeros(len(labels)), labels))


def _best(accuracy: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of (…, G) mean accuracies the place of the best, and it in percent, rounded as there."""
    rounded = np.round(100 * accuracy, 2)
    return rounded.argmax(axis=-1), rounded.max(axis=-1)


def nested(features: Features, labels: Rows, settings: ClassifierSettings) -> Outcome:
    """Folds within folds: of each outer fold the penalty that is best on its inner folds.

    Used for sets without published splits: MR, CR, SUBJ, MPQA.
    """
    outer = _folds(labels, settings, "nested")
    inner = [
        (train[fit], train[test])
        for train, _ in outer
        for fit, test in _folds(labels[train], settings, "nested")
    ]
    learner, grid = open_learner(settings, features, labels), settings.grid("nested")
    accuracy = learner.held_out(inner, grid)
    means = accuracy.reshape(len(outer), settings.kfold, len(grid)).mean(axis=1)
    places, dev = _best(means)
    predicted = learner.predict(outer, [grid[place] for place in places])
    predictions, folds = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    scores = []
    for fold, ((_, test), found) in enumerate(zip(outer, predicted, strict=True)):
        predictions[test], folds[test] = found, fold
        scores.append(round(100 * float((found == labels[test]).mean()), 2))
    accuracy_of_folds = round(float(np.mean(scores)), 2)
    return Outcome(round(float(dev.mean()), 2), accuracy_of_folds, predictions, folds)


def kfold(
    train: Features,
    train_labels: Rows,
    test: Features,
    test_labels: Rows,
    settings: ClassifierSettings,
) -> Outcome:
    """Folds of the training split choose the penalty: TREC, MRPC."""
    features = np.concatenate([train, test])
    labels = np.concatenate([train_labels, test_labels])
    inner = _folds(train_labels, settings, "kfold")
    learner, grid = open_learner(settings, features, labels), settings.grid("kfold")
    means = learner.held_out(inner, grid).mean(axis=0)
    place, dev = _best(means)
    rows = np.arange(len(labels))
    whole = [(rows[: len(train)], rows[len(train) :])]
    [predictions] = learner.predict(whole, [grid[int(place)]])
    return Outcome(float(dev), _percent(predictions, test_labels), predictions)


def split(
    features: tuple[Features, Features, Features],
    labels: tuple[Rows, Rows, Rows],
    settings: ClassifierSettings,
) -> Outcome:
    """Published splits train, dev and test: SST, SICK-E, SNLI, probing."""
    sizes = np.cumsum([len(part) for part in features])
    rows = np.arange(sizes[-1])
    train, dev, test = np.split(rows, sizes[:-1])
    learner = open_learner(settings, np.concatenate(features), np.concatenate(labels))
    grid = settings.grid("split")
    accuracy = learner.held_out([(train, dev)], grid)[0]
    place, best = _best(accuracy)
    chosen = [grid[int(place)]]
    [predictions] = learner.predict([(train, test)], chosen, validation=dev)
    return Outcome(float(best), _percent(predictions, labels[2]), predictions)


def _percent(predictions: Rows, labels: Rows) -> float:
    return round(100 * float((predictions == labels).mean()), 2)
