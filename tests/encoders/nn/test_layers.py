"""Sums over rows and moves of rows: the kernel against torch, and ids grouped by row."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import both_ways
from rejoinder.encoders.nn import layers
from rejoinder.encoders.nn.layers import RowGradient, index_bags, sum_rows
from rejoinder.registry import kernel
from rejoinder.text.ragged import Ragged, offsets_of

needs_kernel = pytest.mark.skipif(
    kernel("encoders.nn._rows") is None, reason="the kernel was not built"
)
both = partial(both_ways, layers)
"""With the kernel, and without it."""


def example(seed, sums, rows, width):
    """The gradient by so many rows of a table, from `rows` owners."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, sums)
    places = random.integers(0, rows, lengths.sum())
    moved = np.sort(random.permutation(sums + 3)[:sums])
    return RowGradient(
        torch.from_numpy(moved),
        torch.from_numpy(places),
        torch.from_numpy(np.append(0, np.cumsum(lengths))),
        torch.from_numpy(random.standard_normal((rows, width), np.float32)),
    )


@needs_kernel
@settings(max_examples=60)
@given(
    seed=st.integers(0, 999),
    sums=st.integers(0, 40),
    rows=st.integers(1, 9),
    width=st.sampled_from([1, 3, 16, 37]),
)
def test_kernel_and_torch_agree(seed, sums, rows, width):
    gradient = example(seed, sums, rows, width)
    torch.testing.assert_close(*both(gradient.summed))
    random = np.random.default_rng(seed)
    table = torch.from_numpy(random.standard_normal((sums + 3, width), np.float32))
    squares = torch.from_numpy(random.random(sums + 3, np.float32))

    def move(accumulators):
        copy, accumulators = table.clone(), accumulators.clone()
        gradient.move(copy, accumulators, 0.3)
        return copy, accumulators

    torch.testing.assert_close(*both(lambda: move(squares)))
    torch.testing.assert_close(*both(lambda: move(squares[:0])))


@needs_kernel
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(layers, "_LEAST_WORK", 1)
    gradient = example(1, 300, 50, 37)
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        table, squares = torch.ones(303, 37), torch.ones(303)
        gradient.move(table, squares, 0.1)
        found.append((gradient.summed(), table, squares))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@needs_kernel
@pytest.mark.parametrize("place", [-1, 9])
def test_places_beyond_the_rows_are_refused(place):
    gradient = example(1, 4, 9, 3)
    gradient.owners[0] = place
    with pytest.raises(ValueError, match="do not belong together"):
        sum_rows(gradient.by_owner, gradient.owners, gradient.offsets)
    table = torch.zeros(2, 3)
    gradient = example(1, 1, 9, 3)
    gradient.rows[0] = place
    with pytest.raises(ValueError, match="do not belong together"):
        gradient.move(table, torch.ones(2), 1.0)
    assert not table.any()


@settings(max_examples=50)
@given(
    seed=st.integers(0, 999),
    sentences=st.integers(0, 40),
    largest=st.sampled_from([0, 3, 1_023, 400_000, 2**31 - 1]),
)
def test_ids_are_grouped_by_row(seed, sentences, largest):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 30, sentences)
    ids = random.integers(0, largest, lengths.sum(), dtype=np.int32, endpoint=True)
    found = index_bags(Ragged(ids, offsets_of(lengths)))
    assert found.rows.tolist() == sorted(set(ids.tolist()))
    starts = found.row_offsets.tolist()
    owners = np.repeat(np.arange(sentences), lengths)
    for row, start, stop in zip(found.rows.tolist(), starts, starts[1:], strict=False):
        assert found.bags[start:stop].tolist() == owners[ids == row].tolist()
