"""Rows of 8-bit numbers: how near they are to the table that they stand for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from rejoinder.encoders.layers import LARGEST, dequantize_rows, dequantized, quantize_rows

tables = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, max_side=12),
    elements=st.floats(-(2.0**100), 2.0**100, width=32),
)


@settings(max_examples=200)
@given(tables)
def test_no_value_is_off_by_more_than_half_a_scale(table):
    rows, scales = quantize_rows(table)
    assert (rows.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, table.shape[:1])
    assert np.abs(rows).max(initial=0) <= LARGEST
    found = dequantize_rows(rows, scales)
    assert found.dtype == np.float32
    errors = np.abs(found.astype(np.float64) - table)
    # scales near the least float32 are themselves rounded
    allowed = 0.5 * scales[:, None] * (1 + 1e-4) + LARGEST * float(np.finfo(np.float32).tiny)
    assert (errors <= allowed).all()


@settings(max_examples=100)
@given(
    arrays(np.float32, (4, 6), elements=st.floats(-100, 100, width=32)).filter(
        lambda table: (np.abs(table).max(axis=1) > 1e-6).all()
    )
)
def test_rows_that_were_int8_stay_the_same(table):
    rows, scales = quantize_rows(table)
    again, again_scales = quantize_rows(dequantize_rows(rows, scales))
    np.testing.assert_array_equal(again, rows)
    np.testing.assert_allclose(again_scales, scales, rtol=1e-6)


def test_only_tables_with_scales_become_floats():
    rows, scales = quantize_rows(np.array([[1.0, -0.5]], np.float32))
    tensors = {"t.weight": rows, "t.scales": scales, "other": np.zeros(2, np.float16)}
    plain = dequantized(tensors)
    assert plain.keys() == {"t.weight", "other"}
    np.testing.assert_allclose(plain["t.weight"], [[1.0, -0.5]], atol=0.5 / LARGEST)
    assert plain["other"].dtype == np.float16
    assert tensors.keys() == {"t.weight", "t.scales", "other"}
