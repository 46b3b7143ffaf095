"""The second stage of `dedupe`: a scorer compares the words of texts whose embeddings are near."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpus.core_text import core_of
from rejoinder.corpus.options import ExtractProgress
from rejoinder.errors import InputError
from rejoinder.inference.near_pairs import NearPairs
from rejoinder.inference.scoring.opened import Scorer
from rejoinder.inference.scoring.scorer import HIGHEST

SecondStage = Callable[[NearPairs, list[str]], NDArray[np.bool_]]
"""Tells which pairs of texts mean the same, of those whose cosine is high enough."""
LEAST_SCORE = 4.0
"""The default of `least_score`: on the scale of STS, from 4 on only details differ."""
_SCORED = 8_192
"""Pairs that are scored at a time."""


def second_stage(
    scorer: Scorer | None, least_score: float | None, progress: ExtractProgress
) -> SecondStage:
    """Returns what tells which pairs of texts mean the same to a scorer; without one, all do.

    Raises:
        InputError: `least_score` is out of range, or there is no scorer.
    """
    if scorer is None:
        if least_score is not None:
            raise InputError("least_score is for a scorer.")
        return lambda pairs, _: np.ones(len(pairs), np.bool_)
    least = LEAST_SCORE if least_score is None else least_score
    if not 0 < least <= HIGHEST:
        raise InputError(f"least_score must be above 0 and at most {HIGHEST:g}; got {least}.")

    def alike(pairs: NearPairs, texts: list[str]) -> NDArray[np.bool_]:
        cores, found = [core_of(text) for text in texts], np.empty(len(pairs), np.bool_)
        for low in range(0, len(pairs), _SCORED):
            part = slice(low, low + _SCORED)
            sides = [
                [cores[row] for row in side[part].tolist()] for side in (pairs.first, pairs.second)
            ]
            found[part] = scorer.score(*sides) >= least
            progress("scoring", min(low + _SCORED, len(pairs)), len(pairs))
        return found

    return alike
