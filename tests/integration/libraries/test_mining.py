"""Paraphrases and communities are those that the real sentence-transformers finds."""

import numpy as np
import pytest
import torch
from sentence_transformers import util

from rejoinder import SentenceEncoder


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder()


@pytest.fixture(scope="module")
def rows(encoder):
    """Embeddings of 2,048 sentences in which some are near each other, all different."""
    verbs, things = (
        ["like", "see", "want", "need", "have", "find", "sell", "buy"],
        ["dogs", "cats", "cars", "pizza"],
    )
    when = ["now", "today", "later", "tomorrow", "soon", "often", "never", "again"]
    people = ["we", "they", "you", "my", "two", "some", "most", "all"]
    texts = [f"{p} {v} {t} {w}" for p in people for v in verbs for t in things for w in when]
    return encoder.encode(texts)


@pytest.mark.parametrize(("top_k", "max_pairs"), [(100, 500_000), (5, 500_000), (100, 20_000)])
def test_pairs_are_the_same(encoder, rows, top_k, max_pairs):
    ours = encoder.paraphrase_mining(rows, top_k=top_k, max_pairs=max_pairs)
    theirs = util.paraphrase_mining_embeddings(
        torch.from_numpy(rows), top_k=top_k, max_pairs=max_pairs
    )
    assert [type(value) for value in ours[0]] == [type(value) for value in theirs[0]]
    both = {(i, j): score for score, i, j in theirs}
    for score, i, j in ours:
        assert score == pytest.approx(both.get((i, j), score), abs=3e-6)
    different = {(i, j) for _, i, j in ours} ^ {(i, j) for _, i, j in theirs}
    # rounding chooses among pairs that are equally near, in their last place or in all places
    scores = rows.astype(float) @ rows.T.astype(float)
    last = np.sort(scores, axis=1)[:, -top_k - 1]
    for i, j in different:
        borders = np.array([last[i], last[j], theirs[-1][0]])
        assert np.abs(borders - scores[i, j]).min() < 3e-6
    assert len(different) < len(ours) / 100


@pytest.mark.parametrize(("threshold", "least"), [(0.75, 10), (0.6, 40), (0.9, 2), (0.5, 1)])
def test_communities_are_the_same(encoder, rows, threshold, least):
    ours = encoder.community_detection(rows, threshold=threshold, min_community_size=least)
    theirs = util.community_detection(rows, threshold=threshold, min_community_size=least)
    assert [sorted(group) for group in ours] == [sorted(group) for group in theirs]
    assert [group[0] for group in ours] == [group[0] for group in theirs]
    assert len(ours) > 3
