"""The kernel of row sums against torch, for all that training asks of it."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import both_ways
from rejoinder.encoders.nn import row_sums
from rejoinder.encoders.nn.row_sums import RowSums
from rejoinder.kernels import kernel

needs_kernel = pytest.mark.skipif(
    kernel("encoders.nn._rows") is None, reason="the kernel was not built"
)


def example(seed, sums, rows, width):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, sums)
    places = random.integers(0, rows, lengths.sum())
    return RowSums(
        torch.from_numpy(random.standard_normal((rows, width), np.float32)),
        torch.from_numpy(places),
        torch.from_numpy(np.append(0, np.cumsum(lengths))),
    )


both = partial(both_ways, row_sums)
"""With the kernel, and without it."""


@needs_kernel
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    sums=st.integers(0, 20),
    rows=st.integers(1, 9),
    width=st.sampled_from([1, 3, 16, 37]),
)
def test_kernel_and_torch_agree(seed, sums, rows, width):
    example_ = example(seed, sums, rows, width)
    torch.testing.assert_close(*both(example_.computed))
    torch.testing.assert_close(*both(example_.mean_squares))
    random = np.random.default_rng(seed)
    table = torch.from_numpy(random.standard_normal((sums + 3, width), np.float32))
    moved = torch.from_numpy(np.sort(random.permutation(sums + 3)[:sums]))
    squares = torch.from_numpy(random.random(sums + 3, np.float32))

    def move(accumulators):
        copy, accumulators = table.clone(), accumulators.clone()
        example_.move(copy, moved, accumulators, 0.3)
        return copy, accumulators

    torch.testing.assert_close(*both(lambda: move(squares)))
    torch.testing.assert_close(*both(lambda: move(squares[:0])))


@needs_kernel
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(row_sums, "_LEAST_WORK", 1)
    given_ = example(1, 300, 50, 37)
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append((given_.computed(), given_.mean_squares()))
    torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(found[0], found[2], strict=True))
    assert all(torch.equal(one, other) for one, other in zip(found[0], found[1], strict=True))


@needs_kernel
@pytest.mark.parametrize("place", [-1, 9])
def test_places_beyond_the_rows_are_refused(place):
    given_ = example(1, 4, 9, 3)
    given_.places[0] = place
    with pytest.raises(ValueError, match="do not belong together"):
        given_.computed()
    with pytest.raises(ValueError, match="do not belong together"):
        given_.mean_squares()
    table = torch.zeros(2, 3)
    given_ = example(1, 1, 9, 3)
    with pytest.raises(ValueError, match="do not belong together"):
        given_.move(table, torch.tensor([place]), torch.ones(2), 1.0)
    assert not table.any()
