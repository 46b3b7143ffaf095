"""Replies vote, are folded, and get confidences and thresholds."""

import numpy as np
import pytest

from rejoinder.conversations.suggestions import (
    FLOOR,
    SIMILARITY,
    Replies,
    by_response,
    denies,
    fit_confidence,
    nearness,
    outcome,
    vote,
    weights_of,
    without_names,
)


def unit(count, dim, seed):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def replies(*groups):
    """Replies of which those with equal numbers are the same."""
    return Replies(np.eye(8, dtype=np.float32)[list(groups)], np.zeros(len(groups), np.bool_))


def voted_for(near, made):
    """What replies score by how near their messages are."""
    alike, weights = made.alike(made), weights_of(near)
    return vote(alike, weights, weights, made.same(made))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello Ann Smith, it is order 1234.", "Hello  , it is order "),
        ("the ÄRGER of Émile", "the  of "),
        ("I think I'm right, I do.", "I think I'm right, I do."),
        ("Where is it? There.", "Where is it? There."),
        ("Ann", "Ann"),
        ("to Paris", "to Paris"),
        ("", ""),
    ],
)
def test_names_and_numbers_are_taken_out_of_texts_of_which_words_are_left(text, expected):
    assert without_names(text) == expected


def test_answers_that_differ_in_names_are_equal_without_them():
    one, other = (
        without_names(f"Your parcel, {name}, left {town} on May {day}.")
        for name, town, day in (("Ann", "Oslo", 3), ("Tom Ford", "New York", 24))
    )
    assert one.split() == other.split()


def test_yes_and_no_are_not_the_same():
    flags = denies(["Yes, we can.", "No, we can't.", "We can not.", "Knowing notes"])
    assert flags.tolist() == [False, True, True, False]
    made = Replies(np.ones((2, 1), np.float32), np.array([False, True]))
    assert made.same(made).tolist() == [[True, False], [False, True]]


def test_many_alike_outweigh_one_that_is_nearer():
    voted = voted_for(np.array([0.9, 0.88, 0.88, 0.88]), replies(0, 1, 1, 1))
    best, second = voted.folded(5)
    assert best.tolist() == [1, 2, 3]
    assert second.tolist() == [0]
    assert voted.alike.tolist() == [1, 3, 3, 3]


def test_scores_are_what_the_module_says():
    rng = np.random.default_rng(0)
    cosines = rng.uniform(0, 1, 30)
    made = Replies(unit(30, 3, 1), rng.random(30) < 0.2)
    weights = weights_of(cosines)
    voted = voted_for(cosines, made)
    raw = np.exp(SIMILARITY * cosines)
    whole = raw.sum() + 30 * np.exp(SIMILARITY * FLOOR)
    np.testing.assert_allclose(weights, raw / whole, rtol=1e-6)
    for one in range(30):
        alike = [
            other
            for other in range(30)
            if one == other
            or (made.rows[one] @ made.rows[other] >= 0.8 and made.denies[one] == made.denies[other])
        ]
        share = sum(raw[alike]) / whole
        assert voted.scores[one] == pytest.approx(share * np.sqrt(len(alike)), rel=1e-5)
    folded = voted.folded(30)
    assert sorted(np.concatenate(folded)) == list(range(30))
    firsts = [voted.scores[group[0]] for group in folded]
    assert firsts == sorted(firsts, reverse=True)
    for group in folded:
        assert voted.same[group[0], group].all()


def test_a_message_is_near_to_others_with_the_same_reply():
    asked = np.eye(4, dtype=np.float32)[[0, 1, 2, 3]]
    query = unit(1, 4, 0)[0]
    alone, alike = (
        nearness(query, asked, made.same(made))
        for made in (replies(*range(4)), replies(0, 0, 1, 2))
    )
    np.testing.assert_allclose(alone, query, rtol=1e-5)
    np.testing.assert_allclose(alike[2:], query[2:], rtol=1e-5)
    middle = (query[0] + query[1]) / np.sqrt(2)
    np.testing.assert_allclose(alike[:2], (query[:2] + middle) / 2, rtol=1e-5)


def test_of_templates_that_are_nearly_the_same_the_one_with_most_votes_is_shown():
    rows = np.array([[1, 0], [0.85, 0.527], [0.84, 0.543]], np.float32)
    voted = voted_for(np.array([0.8, 0.78, 0.78]), Replies(rows, np.zeros(3, np.bool_)))
    [group] = voted.folded(3)
    assert group[0] == 0
    assert voted.shown(group) in {1, 2}


def test_strange_messages_have_low_scores():
    same = replies(*[0] * 10)
    near, far = (voted_for(np.full(10, cosine), same) for cosine in (0.9, 0.2))
    assert near.scores[0] > 10 * far.scores[0]


def test_nothing_known_gives_nothing():
    voted = voted_for(np.empty(0), replies())
    assert voted.folded(3) == []


def test_replies_without_a_known_word_are_not_the_same():
    made = Replies(np.zeros((2, 4), np.float32), np.zeros(2, np.bool_))
    voted = voted_for(np.ones(2), made)
    assert [group.tolist() for group in voted.folded(3)] == [[0], [1]]


def test_canned_answers_are_voted_for_by_past_replies():
    weights = weights_of(np.array([0.9, 0.88, 0.88]))
    canned = replies(3, 1, 0)
    fits, same = np.array([0.9, 0.1, 0.2]), canned.same(canned)
    voted = vote(canned.alike(replies(0, 1, 1)), weights, fits, same)
    assert [group.tolist() for group in voted.folded(3)] == [[1], [2], [0]]
    assert voted.alike.tolist() == [0, 2, 1]
    alone = by_response(replies(3, 1, 0), np.array([0.2, -0.1, 0.5]))
    assert [group.tolist() for group in alone.folded(2)] == [[2], [0]]


@pytest.mark.parametrize("count", [20, 500])
def test_confidences_have_the_greatest_likelihood(count):
    rng = np.random.default_rng(count)
    scores = rng.uniform(0.01, 2, count)
    right = rng.random(count) < 1 / (1 + np.exp(1 - 1.5 * np.log(scores)))
    fitted = fit_confidence(scores, right)

    def cost(slope, intercept):
        chances = 1 / (1 + np.exp(-slope * np.log(scores) - intercept))
        likelihood = np.where(right, np.log(chances), np.log1p(-chances)).sum()
        return -likelihood + 0.5 * (slope - 1) ** 2 + 0.5e-3 * intercept**2

    best = cost(fitted.slope, fitted.intercept)
    for slope, intercept in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
        assert best <= cost(fitted.slope + slope, fitted.intercept + intercept)
    if count == 500:
        assert fitted(scores).mean() == pytest.approx(right.mean(), abs=0.01)


@pytest.mark.parametrize("right", [False, True])
def test_confidences_are_finite_where_all_is_right_or_wrong(right):
    fitted = fit_confidence(np.linspace(0, 1, 50), np.full(50, right))
    chances = fitted(np.array([0.0, 0.5, 3.0]))
    assert np.isfinite(chances).all()
    assert ((chances[1] > 0.9) if right else (chances < 0.1)).all()


def test_confidences_never_fall_as_scores_rise():
    scores = np.linspace(0.1, 1, 100)
    fitted = fit_confidence(scores, scores < 0.5)
    assert (np.diff(fitted(scores)) >= 0).all()


def test_an_outcome_without_answers_has_no_precision():
    told = outcome(np.array([0.1, 0.2]), np.array([True, True]), 0.5)
    assert (told.coverage, told.precision) == (0.0, None)
