"""Sums of rows: the kernel in C and NumPy against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder import registry
from rejoinder.encoders.layers import BagSums, dequantize_rows, quantize_rows
from rejoinder.registry import kernel
from rejoinder.text.ragged import Ragged, offsets_of

ROWS, WIDTH = 23, 37
built = pytest.mark.skipif(kernel("encoders.dan._sums") is None, reason="the kernel is not built")
ways = pytest.mark.parametrize("way", [pytest.param("native", marks=built), "numpy"])


def sums_of(table, scales, way, monkeypatch):
    if way == "numpy":
        monkeypatch.setattr(registry, "WITHOUT_KERNELS", True)
    assert registry.way("encoders.dan._sums") == way
    return BagSums(table, scales)


def table_of(dtype):
    table = np.random.default_rng(0).standard_normal((ROWS, WIDTH), np.float32)
    table[3, :6] = [0.0, -0.0, 65_504.0, -6e-8, 5.96e-8, 6.1e-5]  # halves that are subnormal
    if dtype == np.int8:
        rows, scales = quantize_rows(table)
        return rows, scales, dequantize_rows(rows, scales)
    return table.astype(dtype), None, table.astype(dtype).astype(np.float32)


def batch_of(rows):
    lengths = np.array([len(row) for row in rows], np.int64)
    return Ragged(np.array([i for row in rows for i in row], np.int32), offsets_of(lengths))


@ways
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@given(rows=st.lists(st.lists(st.integers(0, ROWS - 1), max_size=12), max_size=9))
def test_sums_are_those_of_the_definition(way, dtype, rows):
    with pytest.MonkeyPatch.context() as monkeypatch:
        table, scales, plain = table_of(dtype)
        sums = sums_of(table, scales, way, monkeypatch)(batch_of(rows))
    expected = [plain[row].sum(axis=0, dtype=np.float64) for row in rows]
    assert sums.dtype == np.float32
    assert sums.shape == (len(rows), WIDTH)
    if rows:
        np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)


@ways
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_sums_are_divided_by_a_power_of_the_number_of_ids(way, power, monkeypatch):
    table, _, plain = table_of(np.float32)
    if way == "numpy":
        monkeypatch.setattr(registry, "WITHOUT_KERNELS", True)
    rows = [[1, 2, 2], [], [7]]
    sums = BagSums(table, None, power)(batch_of(rows))
    expected = [plain[row].sum(axis=0) / max(len(row), 1) ** power for row in rows]
    np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)


@ways
@pytest.mark.parametrize(
    ("ids", "offsets"), [([-1], [0, 1]), ([ROWS], [0, 1]), ([0, ROWS + 9_999_999], [0, 2])]
)
def test_an_id_without_a_row_is_refused(way, ids, offsets, monkeypatch):
    table, scales, _ = table_of(np.int8)
    sums = sums_of(table, scales, way, monkeypatch)
    with pytest.raises(ValueError, match="sums"):
        sums(Ragged(np.array(ids, np.int32), np.array(offsets, np.int64)))


@built
@pytest.mark.parametrize("offsets", [[0, 2], [1, 1], [0, 1, 0, 1], [0, -1, 1], []])
def test_offsets_that_do_not_fit_are_refused_by_the_kernel(offsets):
    table, _, _ = table_of(np.float32)
    ids = np.zeros(1, np.int32)
    out = np.empty((max(len(offsets) - 1, 0), WIDTH), np.float32)
    with pytest.raises(ValueError, match="do not belong together"):
        kernel("encoders.dan._sums").sums(
            "f", WIDTH, 0.0, table, np.empty(0, np.float32), ids, np.array(offsets, np.int64), out
        )


@built
@pytest.mark.parametrize("kind", ["d", "b"])
def test_another_type_of_table_is_refused_by_the_kernel(kind):
    table, _, _ = table_of(np.float32)
    out = np.empty((1, WIDTH), np.float32)
    with pytest.raises(ValueError, match="do not belong together"):
        kernel("encoders.dan._sums").sums(
            kind,
            WIDTH,
            0.0,
            table,
            np.empty(0, np.float32),
            np.zeros(1, np.int32),
            np.array([0, 1], np.int64),
            out,
        )
