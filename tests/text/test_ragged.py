"""Batches of sentences of any lengths: the same as lists of lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.text.ragged import Ragged, concatenate, offsets_of, padded_groups

lists = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=8)


def batch_of(rows):
    flat = np.array([item for row in rows for item in row], np.int32)
    return Ragged(flat, offsets_of(np.array([len(row) for row in rows], np.int64)))


def as_lists(batch):
    return [batch[row].tolist() for row in range(len(batch))]


@given(lists, st.data())
def test_take_and_concatenate(rows, data):
    batch = batch_of(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9))
    taken = batch.take(np.array(chosen, np.int64))
    assert as_lists(taken) == [rows[row] for row in chosen]
    assert as_lists(concatenate(batch, taken)) == rows + [rows[row] for row in chosen]


@given(lists, st.integers(0, 6), st.integers(0, 8), st.integers(0, 8))
def test_parts_of_a_batch(rows, count, one, other):
    batch, (start, stop) = batch_of(rows), sorted((min(one, len(rows)), min(other, len(rows))))
    assert as_lists(batch.first(count)) == [row[:count] for row in rows]
    assert as_lists(batch.part(start, stop)) == rows[start:stop]
    assert as_lists(batch.only(batch.ids > 4)) == [[n for n in row if n > 4] for row in rows]


@pytest.mark.parametrize("positions", [1, 4, 100])
@given(lists)
def test_groups_have_each_sentence_with_words_once(positions, rows):
    groups = padded_groups(batch_of(rows), positions, 2)
    found = {}
    for group in groups:
        assert group.ids.size <= max(positions, group.ids.shape[1])
        for row, ids, present in zip(group.sentences, group.ids, group.present, strict=True):
            assert not ids[~present].any()
            found[int(row)] = ids[present].tolist()
    assert found == {number: row for number, row in enumerate(rows) if row}
