"""Ids grouped by row, with the kernel and without it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.encoders.nn.sparse import index_bags
from rejoinder.kernels import kernel
from rejoinder.text.ragged import Ragged, offsets_of

needs_kernel = pytest.mark.skipif(
    kernel("encoders.nn._rows") is None, reason="the kernel was not built"
)

largest = st.sampled_from([0, 3, 1_023, 1_024, 400_000, 2**31 - 1])


@needs_kernel
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 999), sentences=st.integers(0, 40), largest=largest)
def test_ids_are_grouped_alike_with_the_kernel_and_without(seed, sentences, largest):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 30, sentences)
    ids = random.integers(0, largest, lengths.sum(), dtype=np.int32, endpoint=True)
    batch = Ragged(ids, offsets_of(lengths))
    found = index_bags(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REJOINDER_NATIVE", "0")
        assert all(
            getattr(found, name).equal(getattr(index_bags(batch), name))
            for name in ("ids", "offsets", "rows", "bags", "row_offsets")
        )
    starts = found.row_offsets.tolist()
    owners = np.repeat(np.arange(sentences), lengths)
    for row, start, stop in zip(found.rows.tolist(), starts, starts[1:], strict=False):
        assert found.bags[start:stop].tolist() == owners[ids == row].tolist()


@needs_kernel
@pytest.mark.parametrize("wrong", [-1, 2**31])
def test_ids_that_no_table_has_are_refused(wrong):
    ids, out = np.array([3, wrong]), np.empty(2, np.int64)
    with pytest.raises(ValueError, match="do not belong together"):
        kernel("encoders.nn._rows").group(ids, np.arange(2), out, out.copy(), np.empty(3, np.int64))
