"""What a first look says about conversations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.links.beliefs import BELIEFS, CANDIDATES, Beliefs, best_candidates
from rejoinder.links.features import WINDOW


def sure_of(parents):
    """Shares of a first look that is sure what each message answers; -1 for none."""
    shares = np.zeros((len(parents), WINDOW + 1), np.float32)
    for row, parent in enumerate(parents):
        shares[row, WINDOW if parent < 0 else parent - row + WINDOW] = 1
    return shares


def test_threads_and_answers_of_a_chat():
    # ann asks, bob asks, carl answers ann, ann answers carl, carl goes on
    authors = np.array([0, 1, 2, 0, 2])
    beliefs = Beliefs(authors, sure_of([-1, -1, 0, 2, 3]))
    assert beliefs.messages[0].tolist() == [1, 1, 0, 0, 0]  # begins
    assert beliefs.messages[2].tolist() == [1, 0, 1, 1, 0]  # is answered
    columns = WINDOW + np.array([[-4, -3, -2, -1]])  # candidates of the last message
    found = beliefs.pairs(4, columns)[..., 0]
    assert found[1].tolist() == [0, 0, 0, 1]  # what it answers by the first look
    assert found[2].tolist() == [1, 0, 1, 1]  # its thread
    assert found[3].tolist() == [1, 0, 1, 0]  # answered already
    assert found[5].tolist() == [1, 0, 1, 1]  # the thread where carl spoke before
    assert found[8].tolist() == [0, 1, 0, 1]  # the last of its thread
    assert found[9].tolist() == [0, 0, 0, 1]  # answers carl
    assert found[12].tolist() == [1, 0, 0, 0]  # carl answered it


def test_who_answers_later():
    authors = np.array([0, 1, 2, 0])
    beliefs = Beliefs(authors, sure_of([-1, -1, 0, 2]))
    found = beliefs.pairs(2, WINDOW + np.array([[-2, -1]]))[..., 0]
    assert found[10].tolist() == [1, 0]  # the candidate's author answers this message
    assert found[11].tolist() == [0, 1]  # another one does


@given(st.integers(1, 90), st.integers(0, 9))
def test_numbers_are_finite_and_the_same_for_any_part(count, seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(WINDOW + 1, 0.1), count).astype(np.float32)
    for row in range(min(count, WINDOW)):
        shares[row, : WINDOW - row] = 0
    beliefs = Beliefs(rng.integers(0, 5, count), shares)
    columns = best_candidates(shares)
    assert columns.shape == (count, CANDIDATES)
    assert (np.diff(columns, axis=1) > 0).all()
    whole = beliefs.pairs(0, columns)
    assert np.isfinite(whole).all()
    assert beliefs.messages.shape == (BELIEFS, count)
    half = count // 2
    np.testing.assert_array_equal(beliefs.pairs(half, columns[half:]), whole[..., half:])
