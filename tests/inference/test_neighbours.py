"""The nearest other rows, compared with a scan of all."""

import numpy as np
import pytest

from rejoinder.inference.neighbours import nearest_others


def rows_of(number, dim=24, seed=0):
    rows = np.random.default_rng(seed).normal(size=(number, dim)) + 0.5
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def scanned(rows, count):
    products = rows @ rows.T
    np.fill_diagonal(products, -np.inf)
    return np.sort(products, axis=1)[:, -count:]


def test_few_rows_are_all_compared():
    rows = rows_of(300)
    nearest, cosines = nearest_others(rows, 7)
    assert np.allclose(np.sort(cosines, axis=1), scanned(rows, 7), atol=1e-6)
    products = np.einsum("nd,nkd->nk", rows, rows[nearest])
    assert np.allclose(products, cosines, atol=1e-6)
    assert (nearest != np.arange(300)[:, None]).all()


def test_cells_find_most_of_them(monkeypatch):
    monkeypatch.setattr("rejoinder.inference.neighbours._COMPARED", 100)
    rows = rows_of(5_000, 8)
    nearest, cosines = nearest_others(rows, 10)
    assert (cosines >= scanned(rows, 10)[:, :1] - 1e-6).mean() > 0.9
    assert all(len({*row}) == 10 for row in nearest.tolist())
    assert (nearest != np.arange(5_000)[:, None]).all()


@pytest.mark.parametrize("compared", [100, 10_000])
def test_the_number_of_threads_changes_nothing(monkeypatch, compared):
    monkeypatch.setattr("rejoinder.inference.neighbours._COMPARED", compared)
    rows = rows_of(3_000)
    one, two = nearest_others(rows, 5), nearest_others(rows, 5, workers=2)
    assert all(mine.tobytes() == other.tobytes() for mine, other in zip(one, two, strict=True))


def test_there_may_be_fewer_others_than_asked_for():
    nearest, cosines = nearest_others(rows_of(3), 15)
    assert np.sort(nearest, axis=1).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert cosines.shape == (3, 2)
    equal, _ = nearest_others(np.tile(rows_of(1), (40, 1)), 5)
    assert (equal != np.arange(40)[:, None]).all()
