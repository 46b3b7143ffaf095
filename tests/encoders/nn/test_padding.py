"""Groups of sentences of like lengths: every token once, within bounds, in the least time."""

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.encoders.nn.layers import pad_groups
from rejoinder.text.ragged import Ragged, offsets_of

lengths_of_a_batch = st.lists(st.integers(0, 12), max_size=25)


def batch_of(lengths):
    return Ragged(np.arange(sum(lengths), dtype=np.int32), offsets_of(np.array(lengths, np.int64)))


@given(lengths_of_a_batch, st.integers(1, 60), st.integers(0, 20))
def test_groups_hold_each_sentence_once_within_the_bound(lengths, positions, overhead):
    batch = batch_of(lengths)
    padded = pad_groups(batch, positions, overhead)
    assert padded.count == len(lengths)
    rows = []
    for group in padded.parts:
        assert group.ids.shape == group.present.shape
        assert group.ids.numel() <= positions or len(group.ids) == 1
        assert group.present.any(dim=0).all()  # no column of padding alone
        assert not group.ids[~group.present].any()
        rows += [ids[kept].tolist() for ids, kept in zip(group.ids, group.present, strict=True)]
    found = dict(zip(padded.order.tolist(), rows, strict=True))
    assert len(found) == len(rows)
    assert found == {i: batch[i].tolist() for i, length in enumerate(lengths) if length}


def time_of(ascending, cuts, overhead):
    return sum((end - begin + overhead) * ascending[end - 1] for begin, end in pairwise([0, *cuts]))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 20))
def test_no_other_groups_take_less_time(lengths, overhead):
    groups = pad_groups(batch_of(lengths), 10_000, overhead).parts
    found = sum((len(group.ids) + overhead) * group.ids.shape[1] for group in groups)
    count = len(lengths)
    least = min(
        time_of(sorted(lengths), [*cuts, count], overhead)
        for number in range(count)
        for cuts in combinations(range(1, count), number)
    )
    assert found == least


def test_sentences_of_one_length_are_divided_evenly():
    groups = pad_groups(batch_of([10] * 9), 40, 5).parts
    assert [len(group.ids) for group in groups] == [3, 3, 3]
