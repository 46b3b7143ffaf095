"""Dense layers and rows of length 1: the kernels in C and NumPy against the definitions."""

import numpy as np
import pytest

from rejoinder import registry
from rejoinder.encoders.layers import Layers, unit_rows
from rejoinder.errors import ModelError
from rejoinder.registry import kernel

built = pytest.mark.skipif(kernel("encoders.dan._sums") is None, reason="the kernel is not built")


@pytest.fixture(params=[pytest.param("native", marks=built), "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(registry, "WITHOUT_KERNELS", True)
    return request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("width", [1, 15, 16, 37, 512])
def test_rows_have_length_one_and_zero_rows_stay_zero(width):
    rows = np.random.default_rng(0).standard_normal((5, width), np.float32) * 1e3
    rows[2] = 0
    given = rows.copy()
    units = unit_rows(rows)
    expected = rows / np.maximum(np.linalg.norm(rows.astype(np.float64), axis=1), 1e-12)[:, None]
    assert units.dtype == np.float32
    np.testing.assert_allclose(units, expected, rtol=1e-6, atol=1e-7)
    assert not units[2].any()
    np.testing.assert_array_equal(rows, given)


@pytest.mark.usefixtures("way")
def test_no_rows_and_rows_that_are_not_contiguous():
    assert unit_rows(np.empty((0, 4), np.float32)).shape == (0, 4)
    wide = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_array_equal(unit_rows(wide[:, ::2]), unit_rows(wide[:, ::2].copy()))


@pytest.mark.usefixtures("way")
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_a_row_that_is_not_finite_is_refused(value):
    rows = np.ones((3, 20), np.float32)
    rows[1, 18] = value
    with pytest.raises(ModelError, match="not finite"):
        unit_rows(rows)


@built
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 5)])
def test_arrays_that_do_not_fit_are_refused_by_the_kernel(shape):
    with pytest.raises(ValueError, match="do not belong together"):
        kernel("encoders.dan._sums").unit_rows(
            4, np.ones((2, 4), np.float32), np.empty(shape, np.float32)
        )


@pytest.mark.usefixtures("way")
def test_layers_have_an_activation_between_them_and_a_residual():
    draw = np.random.default_rng(0)
    first, second, skip, wide, narrow, x = (
        draw.standard_normal(shape, np.float32) for shape in ((5, 4), (3, 5), (3, 4), 5, 3, (6, 4))
    )
    tensors = {
        "dnn.layers.0.weight": first,
        "dnn.layers.0.bias": wide,
        "dnn.layers.1.weight": second,
        "dnn.layers.1.bias": narrow,
        "dnn.skip.weight": skip,
    }
    config = {"activation": "tanh", "layers": [5, 3], "residual": True}
    hidden = np.tanh(x @ first.T + wide)
    expected = hidden @ second.T + narrow + x @ skip.T
    np.testing.assert_allclose(Layers("dnn", config, tensors)(x), expected, atol=1e-5)
