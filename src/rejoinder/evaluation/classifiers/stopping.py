"""Early stopping as in SentEval: keep the best model, stop after some evaluations without gain."""

import copy
from typing import Any


class EarlyStopping:
    """The best of the models that were evaluated, and whether training should stop.

    As in the original, evaluations without gain are counted in total, not in a row.
    """

    def __init__(self, model: Any, patience: int) -> None:
        """Starts with an untrained PyTorch module, whose score counts as -1."""
        self.best = copy.deepcopy(model)
        self.score = -1.0
        self._left = patience

    def stops(self, score: float, model: Any) -> bool:
        """Records an evaluation; returns whether training should stop."""
        if score > self.score:
            self.score, self.best = score, copy.deepcopy(model)
            return False
        self._left -= 1
        return self._left < 0
