"""The fit: its gradient, what it finds, what it leaves alone, and what it refuses."""

import numpy as np
import pytest

from rejoinder.errors import ConfigError, InputError
from rejoinder.models.adaptation import FitSettings, Graded, fit, loss_and_gradients, scores


def drawn(count, dim, seed, dtype=np.float64):
    """Unit rows of both sides, alike to all degrees; the first pair equal, the second opposite."""
    draw = np.random.default_rng(seed)
    first, noise = draw.standard_normal((2, count, dim))
    second = first + draw.uniform(0, 3, (count, 1)) * noise
    first, second = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (first, second))
    second[0], second[1] = first[0], -first[1]
    return first.astype(dtype), second.astype(dtype)


def planted(count, seed, dim=12):
    """Gold by the cosine of a few of the directions; the others are noise, and larger."""
    first, second = drawn(count, dim, seed)
    weights = np.where(np.arange(dim) < 4, 3.0, 0.5)
    x, y = first * weights, second * weights
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    return first.astype(np.float32), second.astype(np.float32), 2.5 + 2.5 * cosine.clip(-1, 1)


def test_the_gradient_is_that_of_finite_differences():
    """Central differences of float64, step 1e-6: to 1e-7 of the largest entry."""
    first, second = (rows[2:] for rows in drawn(11, 5, 0))  # differences at a cosine of 1 are noise
    first[2] = 0.0
    pairs = Graded(first, second, np.random.default_rng(1).uniform(0, 5, 9))
    matrix = np.eye(5) + 0.2 * np.random.default_rng(2).standard_normal((5, 5))
    scale = np.array([1.7, -0.6])
    _, by_matrix, by_scale = loss_and_gradients(matrix, scale, pairs, 0.3)

    def difference(values, place):
        step = np.zeros_like(values)
        step[place] = 1e-6
        losses = []
        for sign in (1, -1):
            moved = values + sign * step
            arguments = (moved, scale) if values is matrix else (matrix, moved)
            losses.append(loss_and_gradients(*arguments, pairs, 0.3)[0])
        return (losses[0] - losses[1]) / 2e-6

    found = np.array([[difference(matrix, (i, j)) for j in range(5)] for i in range(5)])
    np.testing.assert_allclose(by_matrix, found, atol=1e-7 * np.abs(found).max())
    found = np.array([difference(scale, i) for i in range(2)])
    np.testing.assert_allclose(by_scale, found, atol=1e-7 * np.abs(found).max())


def test_pairs_that_are_equal_opposite_or_empty_pull_at_nothing():
    first, second = drawn(2, 6, 3, np.float32)
    pairs = Graded(first, second, np.array([0.0, 5.0]))
    loss, by_matrix, _ = loss_and_gradients(
        np.eye(6, dtype=np.float32), np.array([1.0, 0.0]), pairs, 0.0
    )
    assert loss == pytest.approx(25, abs=1e-2)
    assert np.abs(by_matrix).max() < 2e-3
    zeros = Graded(np.zeros_like(first), second, pairs.gold)
    _, by_matrix, _ = loss_and_gradients(
        np.eye(6, dtype=np.float32), np.array([1.0, 0.0]), zeros, 0.0
    )
    assert not by_matrix.any()
    assert scores(np.eye(6, dtype=np.float32), zeros).tolist() == [2.5, 2.5]


def test_the_score_is_equation_2():
    cosine = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    first = np.tile([1.0, 0.0], (5, 1))
    second = np.stack([cosine, np.sqrt(1 - cosine**2)], axis=1)
    found = scores(np.eye(2), Graded(first, second, np.zeros(5)))
    np.testing.assert_allclose(found, [5, 10 / 3, 2.5, 5 / 3, 0], atol=1e-12)


def test_a_planted_problem_is_found():
    train, dev, test = planted(600, 0), planted(200, 1), planted(200, 2)
    adaptation = fit(Graded(*train), Graded(*dev), FitSettings(learning_rate=3e-3, max_epochs=80))
    facts = adaptation.facts
    assert facts["dev_pearson_before"] < 0.9
    assert facts["dev_pearson_after"] > 0.96
    unseen = [
        np.corrcoef(scores(matrix, Graded(*test)), test[2])[0, 1]
        for matrix in (np.eye(12, dtype=np.float32), adaptation.matrix)
    ]
    assert unseen[1] > 0.95 > 0.9 > unseen[0]
    lengths = np.linalg.norm(adaptation.matrix, axis=0)
    assert lengths[:4].min() > 1.3 * lengths[4:].max()


def test_the_same_seed_gives_the_same_map_and_another_another():
    train, dev = planted(200, 0), planted(80, 1)
    settings = (FitSettings(seed=seed, max_epochs=3, batch_size=50) for seed in (0, 0, 1))
    maps = [fit(Graded(*train), Graded(*dev), one).matrix for one in settings]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert np.abs(maps[0] - maps[2]).max() > 1e-6


def test_a_fit_that_helps_dev_nowhere_keeps_the_identity():
    train, (first, second, gold) = planted(200, 0), planted(80, 1)
    cosine = (first * second).sum(1, dtype=np.float64)
    by_angle = 5 * (1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi)
    adaptation = fit(Graded(*train), Graded(first, second, by_angle.clip(0, 5)))
    np.testing.assert_array_equal(adaptation.matrix, np.eye(12))
    assert adaptation.facts["epochs"] == 0
    assert adaptation.facts["dev_pearson_after"] == adaptation.facts["dev_pearson_before"]
    assert len(gold) == adaptation.facts["dev_pairs"]


def test_a_large_penalty_holds_the_map_at_the_identity():
    train, dev = planted(300, 0), planted(80, 1)
    free, held = (
        fit(Graded(*train), Graded(*dev), FitSettings(learning_rate=3e-3, penalty=penalty)).matrix
        - np.eye(12)
        for penalty in (0.0, 10.0)
    )
    assert np.linalg.norm(held) < 0.2 * np.linalg.norm(free)


@pytest.mark.parametrize(
    "how", [lambda gold: gold + 3, lambda gold: gold * np.nan, lambda gold: gold * 0]
)
def test_gold_that_can_not_be_fitted_is_named(how):
    first, second, gold = planted(20, 0)
    dev = Graded(*planted(20, 1))
    with pytest.raises(InputError, match=r"20 training .*0 to 5"):
        fit(Graded(first, second, how(gold)), dev)
    with pytest.raises(InputError, match="20 dev pairs"):
        fit(dev, Graded(first, second, how(gold)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"learning_rate": 0}, "learning_rate is 0: .* > 0"),
        ({"penalty": -1}, "penalty is -1: .* >= 0"),
        ({"batch_size": 1.5}, "batch_size is 1.5: .*`int`"),
        ({"seed": True}, "seed is True: .*`int`"),
        ({"patience": None}, "patience is None: .*`int`"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast': .*`float`"),
        ({"penalty": float("nan")}, "penalty is nan: .* >= 0"),
        ({"learning_rate": float("inf")}, "learning_rate is inf"),
    ],
)
def test_settings_that_can_not_be_used_are_named(settings, said):
    with pytest.raises(ConfigError, match=said):
        FitSettings(**settings)
