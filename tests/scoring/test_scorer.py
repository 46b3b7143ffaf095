"""Scores of pairs: one for each pair whatever its batch and order, with what moved it."""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.scoring.scorer import HIGHEST, Scorer, interval_ends

FIRST = ["A man plays a guitar.", "Two dogs run.", "It rains.", ""]
SECOND = ["A man is playing the guitar.", "A cat sleeps.", "It does not rain.", "Hello"]


@pytest.fixture(scope="module")
def scorer():
    return Scorer(threads=2)


def test_neither_order_nor_batch_changes_a_score(scorer):
    together = scorer.score(FIRST, SECOND)
    np.testing.assert_array_equal(together, scorer.score(SECOND, FIRST))
    alone = [scorer.score(one, other) for one, other in zip(FIRST, SECOND, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together.dtype == np.float32
    assert ((together >= 0) & (together <= HIGHEST)).all()


def test_moves_sum_to_the_score_within_its_interval(scorer):
    scores = scorer.score(FIRST, SECOND).tolist()
    for pair, score in zip(scorer.explain(FIRST, SECOND), scores, strict=True):
        assert pair.score == pytest.approx(score, abs=1e-5)
        assert pair.low <= pair.score <= pair.high
        total = pair.usual + sum(move.by for move in pair.moves)
        assert min(max(total, 0), HIGHEST) == pytest.approx(pair.score, abs=1e-4)
        sizes = [abs(move.by) for move in pair.moves]
        assert sizes == sorted(sizes, reverse=True)


def test_other_numbers_of_texts_are_refused(scorer):
    with pytest.raises(InputError, match="2 and 1"):
        scorer.score(["a", "b"], ["c"])


def test_ends_of_intervals_stay_on_the_scale():
    points = np.array([0, 5], np.float32)
    interval = points, np.array([-1, -1], np.float32), np.array([1, 1], np.float32)
    low, high = interval_ends(np.array([0.5, 3, 4.5], np.float32), interval)
    assert (low.tolist(), high.tolist()) == ([0, 2, 3.5], [1.5, 4, 5])
