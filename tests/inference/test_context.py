"""Ranking responses to a message with the turns before it."""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.search import DECAY, TURNS, WEIGHT, with_turns
from tiny_models import dan_model

REPLIES = ["you", "cat", "hello you", "dog"]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(dan_model())


def test_a_turn_weighs_less_than_the_message_and_more_than_earlier_ones():
    rows = np.eye(4, dtype=np.float32)
    [found] = with_turns(rows)
    assert np.allclose(found / found[3], [WEIGHT * DECAY**2, WEIGHT * DECAY, WEIGHT, 1])
    assert np.isclose(np.linalg.norm(found), 1)
    assert with_turns(np.zeros((2, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_rank_reads_the_turns(encoder):
    plain = encoder.rank("hello", REPLIES)
    assert encoder.rank("hello", REPLIES, context=[]) == plain
    turns = ["cat", "dog"]
    hits = encoder.rank("hello", REPLIES, context=turns)
    query = with_turns(encoder.encode([*turns, "hello"]))[0]
    scores = encoder.encode_response(REPLIES) @ query
    assert [hit.index for hit in hits] == np.argsort(-scores, kind="stable").tolist()
    assert np.allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=1e-6)
    assert encoder.rank("hello", REPLIES, context="cat") == encoder.rank(
        "hello", REPLIES, context=["cat"]
    )
    assert encoder.rank("hello", REPLIES, context=turns[::-1]) != hits


def test_turns_far_back_are_not_read(encoder):
    turns = ["you", *["cat"] * TURNS]
    assert encoder.rank("hello", REPLIES, context=turns) == encoder.rank(
        "hello", REPLIES, context=turns[1:]
    )


def test_a_message_without_known_words_is_ranked_by_its_turns(encoder):
    unknown = encoder.rank("zzzqqq", REPLIES)
    assert {hit.score for hit in unknown} == {0}
    assert encoder.rank("zzzqqq", REPLIES, context=["cat"])[0].score > 0


def test_turns_that_are_not_strings_are_refused(encoder):
    with pytest.raises(InputError, match="None"):
        encoder.rank("hello", REPLIES, context=["cat", None])
