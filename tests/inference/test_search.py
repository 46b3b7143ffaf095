"""Pairs and communities: against all pairs compared one by one, in any blocks.

Ranking responses to a message with the turns before it.
"""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.search import DECAY, TURNS, WEIGHT, with_turns
from tiny_models import dan_model

TEXTS = ["How old are you?", "What is your age?", "Where do you live?", "How old are you?", ""]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder("rejoinder-small", threads=1)


def unit(count, dim, seed):
    """Rows in clusters of different sizes, so that some are near each other."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(1 + count // 8, dim))[random.integers(0, 1 + count // 8, count)]
    rows = rows + random.normal(size=rows.shape) * random.uniform(0.1, 1.5, (count, 1))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def all_pairs(rows, top_k, max_pairs):
    """The best pairs, by definition."""
    scores = rows.astype(float) @ rows.T.astype(float)
    np.fill_diagonal(scores, -np.inf)
    nearest = np.argsort(-scores, axis=1)[:, : min(top_k, len(rows) - 1)]
    pairs = {(min(i, j), max(i, j)) for i, others in enumerate(nearest.tolist()) for j in others}
    return sorted(pairs, key=lambda pair: -scores[pair])[:max_pairs]


@pytest.mark.parametrize("count", [0, 1, 2, 9, 300])
@pytest.mark.parametrize(("top_k", "max_pairs"), [(1, 10), (3, 200), (40, 10_000), (1_000, 50)])
@pytest.mark.parametrize("block", [4, 512])
@pytest.mark.parametrize("workers", [1, 3])
def test_pairs_are_the_best_of_all(encoder, monkeypatch, count, top_k, max_pairs, block, workers):
    monkeypatch.setattr("rejoinder.inference.near_pairs._BLOCK", block)
    monkeypatch.setattr("rejoinder.inference.near_pairs._BLOCK_SCORES", 50 * block)
    monkeypatch.setattr("rejoinder.inference.near_pairs._SAMPLE", 20)
    rows = unit(count, encoder.dim, count + top_k)
    monkeypatch.setattr(encoder, "_threads", workers)
    found = encoder.paraphrase_mining(rows, top_k=top_k, max_pairs=max_pairs)
    assert {(i, j) for _, i, j in found} == set(all_pairs(rows, top_k, max_pairs))
    scores = [score for score, *_ in found]
    np.testing.assert_allclose(scores, [rows[i] @ rows[j] for _, i, j in found], atol=1e-6)
    assert scores == sorted(scores, reverse=True)


def all_communities(rows, threshold, least):
    """The communities, by definition."""
    scores = rows.astype(float) @ rows.T.astype(float)
    near = [np.flatnonzero(row >= threshold).tolist() for row in scores]
    found, used = [], set()
    for centre in sorted(range(len(rows)), key=lambda row: -len(near[row])):
        members = [row for row in near[centre] if row not in used]
        if centre not in used and len(near[centre]) >= least and len(members) >= least:
            members.sort(key=lambda row: -scores[centre, row])
            found.append(members)
            used.update(members)
    return sorted(found, key=len, reverse=True)


@pytest.mark.parametrize("count", [0, 1, 9, 300])
@pytest.mark.parametrize(("threshold", "least"), [(0.5, 1), (0.4, 5), (0.2, 10), (-1, 3)])
@pytest.mark.parametrize("block", [4, 512])
def test_communities_are_those_of_their_definition(
    encoder, monkeypatch, count, threshold, least, block
):
    monkeypatch.setattr("rejoinder.inference.near_pairs._BLOCK", block)
    monkeypatch.setattr("rejoinder.inference.near_pairs._BLOCK_SCORES", 50 * block)
    rows = unit(count, encoder.dim, count)
    found = encoder.community_detection(rows, threshold=threshold, min_community_size=least)
    assert found == all_communities(rows, threshold, least)


def test_sentences_are_encoded(encoder):
    found = encoder.paraphrase_mining(TEXTS)
    assert len(found) == 10
    assert found == encoder.paraphrase_mining(encoder.encode(TEXTS))
    (score, *same), (near, *pair), *_ = found
    assert (same, score) == ([0, 3], pytest.approx(1, abs=1e-6))
    assert (pair, near > 0.6) == ([0, 1], True)
    assert encoder.community_detection(TEXTS, threshold=0.6, min_community_size=2) == [[0, 3, 1]]
    assert encoder.paraphrase_mining("one") == encoder.community_detection("one") == []


def test_equal_scores_are_chosen_by_index_in_any_number_of_threads(encoder, monkeypatch):
    rows = np.repeat(np.eye(12, encoder.dim, dtype=np.float32), 40, axis=0)
    monkeypatch.setattr("rejoinder.inference.near_pairs._BLOCK", 16)
    monkeypatch.setattr("rejoinder.inference.outputs._MIN_SLICE", 16)
    for threads in (1, 2, 4):
        monkeypatch.setattr(encoder, "_threads", threads)
        found = encoder.paraphrase_mining(rows, top_k=5, max_pairs=100)
        pairs = [(i, j) for _, i, j in found]
        assert pairs == encoder_pairs(rows, 5, 100)


def encoder_pairs(rows, top_k, max_pairs):
    """All pairs by definition, of equal ones the first."""
    scores = rows @ rows.T
    np.fill_diagonal(scores, -np.inf)
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    pairs = {(min(i, j), max(i, j)) for i, others in enumerate(nearest.tolist()) for j in others}
    return sorted(pairs, key=lambda pair: (-scores[pair], pair))[:max_pairs]


def test_equal_sentences_have_equal_scores_in_order(encoder):
    texts = [f"Who is number {number % 7}?" for number in range(70)]
    found = encoder.paraphrase_mining(texts)
    same = [(i, j) for i in range(70) for j in range(i + 1, 70) if i % 7 == j % 7]
    for score in {score for score, *_ in found}:
        pairs = [(i, j) for each, i, j in found if each == score]
        assert pairs == sorted(pairs)
    assert sorted((i, j) for _, i, j in found[: len(same)]) == same


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("paraphrase_mining", {"top_k": 0}, "top_k must be 1 or more"),
        ("paraphrase_mining", {"max_pairs": 0}, "max_pairs must be 1 or more"),
        ("paraphrase_mining", {"show_progress_bar": 1}, "show_progress_bar must be True or False"),
        ("community_detection", {"threshold": 75}, "threshold must be a cosine, from -1 to 1"),
        ("community_detection", {"threshold": "high"}, "threshold must be a cosine"),
        ("community_detection", {"threshold": float("nan")}, "threshold must be a cosine"),
        ("community_detection", {"min_community_size": 0}, "must be 1 or more"),
    ],
)
def test_bad_arguments_are_one_sentence(encoder, method, arguments, message):
    with pytest.raises(InputError, match=message):
        getattr(encoder, method)(TEXTS, **arguments)


def test_progress_is_drawn_on_standard_error(encoder, capsys):
    encoder.paraphrase_mining(TEXTS, show_progress_bar=True)
    encoder.community_detection(TEXTS, show_progress_bar=True)
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert drawn.err.count("comparing") >= 2


REPLIES = ["you", "cat", "hello you", "dog"]


@pytest.fixture(scope="module")
def ranker():
    return SentenceEncoder(dan_model())


def test_a_turn_weighs_less_than_the_message_and_more_than_earlier_ones():
    rows = np.eye(4, dtype=np.float32)
    [found] = with_turns(rows)
    assert np.allclose(found / found[3], [WEIGHT * DECAY**2, WEIGHT * DECAY, WEIGHT, 1])
    assert np.isclose(np.linalg.norm(found), 1)
    assert with_turns(np.zeros((2, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_rank_reads_the_turns(ranker):
    plain = ranker.rank("hello", REPLIES)
    assert ranker.rank("hello", REPLIES, context=[]) == plain
    turns = ["cat", "dog"]
    hits = ranker.rank("hello", REPLIES, context=turns)
    query = with_turns(ranker.encode([*turns, "hello"]))[0]
    scores = ranker.encode_response(REPLIES) @ query
    assert [hit.index for hit in hits] == np.argsort(-scores, kind="stable").tolist()
    assert np.allclose([hit.score for hit in hits], np.sort(scores)[::-1], atol=1e-6)
    assert ranker.rank("hello", REPLIES, context="cat") == ranker.rank(
        "hello", REPLIES, context=["cat"]
    )
    assert ranker.rank("hello", REPLIES, context=turns[::-1]) != hits


def test_turns_far_back_are_not_read(ranker):
    turns = ["you", *["cat"] * TURNS]
    assert ranker.rank("hello", REPLIES, context=turns) == ranker.rank(
        "hello", REPLIES, context=turns[1:]
    )


def test_a_message_without_known_words_is_ranked_by_its_turns(ranker):
    unknown = ranker.rank("zzzqqq", REPLIES)
    assert {hit.score for hit in unknown} == {0}
    assert ranker.rank("zzzqqq", REPLIES, context=["cat"])[0].score > 0


def test_turns_that_are_not_strings_are_refused(ranker):
    with pytest.raises(InputError, match="None"):
        ranker.rank("hello", REPLIES, context=["cat", None])
