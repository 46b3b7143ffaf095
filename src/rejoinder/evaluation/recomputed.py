"""Scores computed again from saved predictions: the scores of a results file must follow."""

from collections.abc import Mapping

from rejoinder.errors import InputError
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics import metric_of
from rejoinder.measures.correlation import ScoringError

_EXACT = 1e-9


def check_scores(scores: Mapping[str, float], main: str, items: Items, where: str) -> None:
    """Compares scores with those that follow from items.

    Args:
        scores: by name. Those that don't follow from items are not checked.
        main: the name of the main score.
        items: what was predicted.
        where: how error messages begin.

    Raises:
        InputError: a score differs, or the items give no score.
    """
    metric = metric_of(main)
    try:
        recomputed = metric.recompute(items)
    except ScoringError as error:
        raise InputError(f"{where}: the saved predictions give no {main}: {error}") from None
    for name, value in recomputed.items():
        allowed = _EXACT * max(1.0, abs(value)) + metric.rounding.get(name, 0.0)
        if name in scores and abs(scores[name] - value) > allowed:
            raise InputError(
                f"{where}: {name} is {scores[name]}, and the saved predictions give {value:.6g}; "
                "the file was changed after it was written. Evaluate again."
            )
