"""`accuracy`: the share of items with the right class, in percent."""

import numpy as np

from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, compare_correct
from rejoinder.measures import Floats

_ROUNDED = 0.005
"""SentEval's accuracies and F1 are rounded to two digits."""


def f1_score(predictions: Floats, gold: Floats) -> float:
    """Returns F1 of class 1 in percent; 0 if class 1 is neither gold nor predicted."""
    both = int(((predictions == 1) & (gold == 1)).sum())
    either = int((predictions == 1).sum() + (gold == 1).sum())
    return 100 * 2 * both / either if either else 0.0


def _recompute(items: Items) -> dict[str, float]:
    right = items.predictions == items.gold
    accuracy = 100 * float(right.mean())
    if items.folds is not None:
        folds = items.folds
        means = [round(100 * float(right[folds == fold].mean()), 2) for fold in np.unique(folds)]
        accuracy = float(np.mean(means))
    return {"accuracy": accuracy, "f1": f1_score(items.predictions, items.gold)}


METRICS = (
    Metric(
        name="accuracy",
        recompute=_recompute,
        errors=lambda items: np.asarray(items.predictions != items.gold, np.float64),
        test=lambda first, second, seed, _draws: compare_correct(
            first.predictions == first.gold, second.predictions == second.gold, seed, percent=True
        ),
        percent=True,
        not_percent=("share", "similarity_*"),
        rounding={"accuracy": _ROUNDED, "f1": _ROUNDED},
    ),
)
