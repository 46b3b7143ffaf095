"""Pairs as rows of objectives: crops of replies."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.training.data.pair_rows import Crops, MessagesAndReplies, PairTexts


def pairs_of(lengths):
    """Pairs whose replies have these lengths; every token of a reply is different."""
    responses = Ragged(np.arange(sum(lengths), dtype=np.int32), offsets_of(np.array(lengths)))
    inputs = Ragged(np.arange(len(lengths), dtype=np.int32), np.arange(len(lengths) + 1))
    keys = np.arange(len(lengths))
    return PairTexts(inputs, responses, keys, keys + 100)


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=30),
    st.integers(2, 20),
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
    st.integers(0, 2**32 - 1),
)
def test_crops_are_spans_of_long_replies(lengths, min_words, one, other, seed):
    least, most = sorted((one, other))
    pairs, crops = pairs_of(lengths), Crops(min_words, least, most)
    usable = crops.usable(pairs)
    assert usable.tolist() == [i for i, length in enumerate(lengths) if length >= min_words]
    rows = crops.take(pairs, usable, np.random.default_rng(seed))
    assert len(rows) == 2 * len(usable)
    left, right = crops.keys(pairs, usable)
    assert left.tolist() == right.tolist() == (usable + 100).tolist()
    for side in (0, 1):
        for row, index in enumerate(usable):
            span, whole = rows[side * len(usable) + row], pairs.responses[index]
            start = int(span[0] - whole[0])
            assert span.tolist() == whole[start : start + len(span)].tolist()
            assert max(1, least * len(whole) - 1) <= len(span) <= max(1, most * len(whole) + 1)


def test_messages_and_replies_stay_as_they_are():
    pairs, kind = pairs_of([3, 0, 2]), MessagesAndReplies()
    assert kind.usable(pairs).tolist() == [0, 1, 2]
    chosen = np.array([2, 0])
    rows = kind.take(pairs, chosen, np.random.default_rng(0))
    assert [rows[i].tolist() for i in range(4)] == [[2], [0], [3, 4], [0, 1, 2]]
    assert [keys.tolist() for keys in kind.keys(pairs, chosen)] == [[2, 0], [102, 100]]
