"""Near pairs are all that there are, or of many rows nearly all, whatever the number of threads."""

import numpy as np
import pytest

from rejoinder.inference import near_pairs as module
from rejoinder.inference import neighbours
from rejoinder.inference.near_pairs import near_pairs, survey


def unit(rows):
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def clustered(count, dim, spread, seed=0):
    """Rows around a third as many centres."""
    draw = np.random.default_rng(seed)
    centres = unit(draw.standard_normal((count // 3, dim)))
    return unit(centres[draw.integers(0, len(centres), count)] + spread * unit(
        draw.standard_normal((count, dim))
    ))  # fmt: skip


def as_set(pairs):
    return {
        (min(i, j), max(i, j))
        for i, j in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    }


def expected(rows, floor):
    first, second = np.nonzero(np.triu(rows @ rows.T >= floor, 1))
    return {*zip(first.tolist(), second.tolist(), strict=True)}


@pytest.mark.parametrize("count", [0, 1, 2, 3_000])
def test_few_rows_are_all_compared(count):
    rows = clustered(3_000, 24, 0.5)[:count]
    pairs = near_pairs(rows, 0.8)
    assert as_set(pairs) == expected(rows, 0.8)
    assert len(as_set(pairs)) == len(pairs)
    cosines = np.einsum("nd,nd->n", rows[pairs.first], rows[pairs.second])
    np.testing.assert_allclose(pairs.scores, cosines, atol=1e-6)
    assert survey(rows).found(pairs, 0.8).recall(0.8) == 1


@pytest.fixture
def cells(monkeypatch):
    """Cells of 64 rows, also of few."""
    monkeypatch.setattr(module, "_COMPARED", 100)
    monkeypatch.setattr(neighbours, "_CELL", 64)


@pytest.mark.parametrize("dim", [24, 96])
def test_of_many_rows_nearly_all_near_pairs_are_found(cells, dim):
    rows = clustered(6_000, dim, 0.5)
    wanted, found = expected(rows, 0.8), near_pairs(rows, 0.8)
    assert as_set(found) <= expected(rows, 0.8 - 1e-5)
    assert len(as_set(found)) == len(found), "no pair is found twice"
    recall = len(as_set(found) & wanted) / len(wanted)
    assert recall > 0.9
    assert survey(rows, 1_000).found(found, 0.8).recall(0.8) == pytest.approx(recall, abs=0.02)


def test_threads_do_not_change_what_is_found(cells):
    rows = clustered(4_000, 96, 0.6)
    one, two = near_pairs(rows, 0.7, 1), near_pairs(rows, 0.7, 2)
    for name in ("first", "second", "scores"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_progress_ends_with_all_rows(cells):
    seen = []
    near_pairs(clustered(1_000, 24, 0.5), 0.9, progress=lambda *done: seen.append(done))
    assert seen[-1] == (1_000, 1_000)


def test_a_survey_knows_the_nearest_and_counts_pairs():
    rows = clustered(2_000, 24, 0.5)
    seen = survey(rows, 500)
    products = rows @ rows.T
    np.fill_diagonal(products, -1)
    np.testing.assert_allclose(seen.best, products[seen.places].max(axis=1), atol=1e-6)
    assert seen.count(0.8) == pytest.approx(len(expected(rows, 0.8)), rel=0.1)
    assert survey(rows[:0]).best.shape == (0,)


def test_a_row_of_zeros_is_near_nothing():
    rows = np.zeros((3, 4), np.float32)
    assert len(near_pairs(rows, 0.5)) == 0
