"""The kernel of dense layers against torch, in both dtypes."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import both_ways
from rejoinder.encoders.nn import dense_math
from rejoinder.encoders.nn.dense import ACTIVATIONS, unit_rows
from rejoinder.encoders.nn.dense_math import lengths, tanh, unit_gradients
from rejoinder.encoders.nn.shares import even_bounds
from rejoinder.kernels import kernel

needs_kernel = pytest.mark.skipif(
    kernel("encoders.nn._dense") is None, reason="the kernel was not built"
)

both = partial(both_ways, dense_math)
"""With the kernel, and without it."""

seeds = st.integers(0, 999)
counts = st.integers(0, 30)
widths = st.sampled_from([1, 16, 37, 700])
dtypes = st.sampled_from([torch.float32, torch.bfloat16])


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@needs_kernel
@settings(max_examples=60, deadline=None)
@given(
    seed=seeds,
    count=counts,
    width=widths,
    dtype=dtypes,
    size=st.sampled_from([1e-6, 0.01, 1.0, 30.0]),
)
def test_tanh_of_small_and_large_numbers(seed, count, width, dtype, size):
    x = (drawn(seed, count, width) * size).to(dtype)
    ours, theirs = both(lambda: tanh(x))
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, theirs)


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tanh_of_what_is_not_finite(dtype):
    x = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0], dtype=dtype)
    torch.testing.assert_close(*both(lambda: tanh(x)), equal_nan=True)


@needs_kernel
@settings(max_examples=60, deadline=None)
@given(seed=seeds, count=counts, width=widths, dtype=dtypes)
def test_rows_of_length_1_and_their_gradients(seed, count, width, dtype):
    x = drawn(seed, count, width).to(dtype)
    x[1::3] = 0.0
    present = drawn(seed + 1, count) > -1.0
    torch.testing.assert_close(*both(lambda: lengths(x)))
    torch.testing.assert_close(*both(lambda: dense_math.unit_rows(x, present)))
    rows, factors = dense_math.unit_rows(x, present)
    gradient = drawn(seed + 2, count, width)
    factors = factors.clamp(max=1.0)  # a row of zeros has a huge one, and rounding with it
    ours, theirs = both(lambda: unit_gradients(gradient, rows, factors, dtype))
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, theirs)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, count=st.integers(1, 30), width=widths)
def test_gradients_are_those_of_torch_s_operations(seed, count, width):
    def gradients(activation, scaled):
        x = drawn(seed, count, width).requires_grad_()
        (scaled(activation(x)) * drawn(seed + 1, count, width)).sum().backward()
        return x.grad

    present = torch.ones(count, dtype=torch.bool)
    ours = gradients(ACTIVATIONS["tanh"], lambda y: unit_rows(y, present))
    theirs = gradients(torch.tanh, torch.nn.functional.normalize)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@needs_kernel
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(dense_math, "_LEAST_WORK", 1)
    x, present = drawn(1, 301, 37), torch.ones(301, dtype=torch.bool)
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        rows, factors = dense_math.unit_rows(x, present)
        found.append((tanh(x), lengths(x), rows, unit_gradients(x, rows, factors)))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@needs_kernel
def test_arrays_that_do_not_belong_together_are_refused():
    native = kernel("encoders.nn._dense")
    x, out = drawn(1, 4, 8).numpy(), torch.empty(3, 8).numpy()
    flags = torch.ones(4, dtype=torch.bool).numpy()
    for call in (
        lambda: native.tanh(0, 1, even_bounds(32, 1), "f", x, out),
        lambda: native.tanh(0, 1, even_bounds(31, 1), "f", x, x),
        lambda: native.lengths(0, 1, even_bounds(4, 1), "f", 9, x, out[0, :4].copy()),
        lambda: native.unit_rows(0, 1, even_bounds(4, 1), "f", 8, x, flags, out, out[0, :4].copy()),
        lambda: native.unit_gradients(0, 1, even_bounds(4, 1), "b", 8, x, x, x[0, :4].copy(), out),
    ):
        with pytest.raises(ValueError, match="do not belong together"):
            call()
