"""SentEval's three ways of choosing a penalty and scoring a classifier (its validation.py)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.evaluation.classifiers.learners import Features, Rows, open_learner
from rejoinder.evaluation.classifiers.settings import ClassifierSettings


@dataclass(frozen=True)
class Outcome:
    """What a classifier got right."""

    dev_accuracy: float
    """In percent: of the penalty that was chosen, where it was chosen."""
    test_accuracy: float
    """In percent; of `nested` the mean over folds."""
    predictions: Rows
    """(N,) classes of the test rows; of `nested` each row's from the fold that held it out."""


def _folds(labels: Rows, settings: ClassifierSettings, protocol: str) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(
        n_splits=settings.kfold, shuffle=True, random_state=settings.fold_seed(protocol)
    )
    try:
        return list(splitter.split(np.zeros(len(labels)), labels))
    except ValueError as error:
        raise InputError(f"{settings.kfold} folds of {len(labels)} rows: {error}") from None


def _best(accuracy: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of (…, G) mean accuracies the place of the best, and it in percent, rounded as there."""
    rounded = np.round(100 * accuracy, 2)
    return rounded.argmax(axis=-1), rounded.max(axis=-1)


def nested(features: Features, labels: Rows, settings: ClassifierSettings) -> Outcome:
    """Folds within folds: of each outer fold the penalty that is best on its inner folds.

    Used for sets without published splits: MR, CR, SUBJ, MPQA.
    """
    learner, grid = open_learner(settings, features, labels), settings.grid("nested")
    outer = _folds(labels, settings, "nested")
    inner = [
        (train[fit], train[test])
        for train, _ in outer
        for fit, test in _folds(labels[train], settings, "nested")
    ]
    accuracy = learner.held_out(inner, grid)
    means = accuracy.reshape(len(outer), settings.kfold, len(grid)).mean(axis=1)
    places, dev = _best(means)
    predicted = learner.predict(outer, [grid[place] for place in places])
    predictions = np.empty(len(labels), np.int64)
    scores = []
    for (_, test), found in zip(outer, predicted, strict=True):
        predictions[test] = found
        scores.append(round(100 * float((found == labels[test]).mean()), 2))
    return Outcome(round(float(dev.mean()), 2), round(float(np.mean(scores)), 2), predictions)


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
    learner, grid = open_learner(settings, features, labels), settings.grid("kfold")
    inner = _folds(train_labels, settings, "kfold")
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
