"""Rows times weights: the kernel in C and NumPy against the product, and rows in any batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.encoders.linear import Linear
from rejoinder.kernels import kernel

built = pytest.mark.skipif(
    kernel("encoders._layers") is None, reason="the kernel is not built, or not for this processor"
)


@pytest.fixture(params=[pytest.param("native", marks=built), "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setenv("REJOINDER_NATIVE", "0")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 7, 96, 97, 200])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (7, 31), (32, 32), (300, 33), (64, 500)])
def test_a_layer_is_its_product(rows, inputs, outputs):
    x, weight, bias = numbers(rows, inputs), numbers(outputs, inputs, seed=1), numbers(outputs)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    found = Linear(weight, bias)(x)
    assert (found.dtype, found.shape) == (np.float32, (rows, outputs))
    np.testing.assert_allclose(found, expected, atol=1e-6 * (inputs + 1))
    np.testing.assert_allclose(Linear(weight)(x), expected - bias, atol=1e-6 * (inputs + 1))


@built
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 80), st.integers(1, 80), st.data())
def test_a_row_has_the_same_bits_in_any_batch(rows, inputs, outputs, data):
    x, layer = numbers(rows, inputs), Linear(numbers(outputs, inputs, seed=1), numbers(outputs))
    whole = layer(x)
    picked = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=20))
    np.testing.assert_array_equal(layer(x[picked]), whole[picked])
    start = data.draw(st.integers(0, rows - 1))
    np.testing.assert_array_equal(layer(x[start:]), whole[start:])


@built
@pytest.mark.parametrize("out", [(2, 3), (3, 2), (1, 5)])
def test_arrays_that_do_not_fit_are_refused_by_the_kernel_of_layers(out):
    panels, bias = np.ones((1, 4, 32), np.float32), np.ones(5, np.float32)
    with pytest.raises(ValueError, match="do not belong together"):
        kernel("encoders._layers").dense(
            4, np.ones((2, 4), np.float32), panels, bias, np.empty(out, "f4")
        )
