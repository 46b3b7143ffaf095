"""The network: scores written out, and moves that sum to them."""

import numpy as np
import pytest

from rejoinder.errors import ModelError
from rejoinder.inference.scoring.network import Network


def network(features=5, hidden=7, seed=0):
    draw = np.random.default_rng(seed)

    def normal(*shape):
        return draw.standard_normal(shape).astype(np.float32)

    return Network(
        normal(features), abs(normal(features)) + 1, normal(features, hidden), normal(hidden),
        normal(hidden), normal(1),
    )  # fmt: skip


def test_a_score_written_out():
    one = Network(*(np.array(each, np.float32) for each in ([1], [2], [[3]], [4], [5], [6])))
    assert one(np.array([[3]], np.float32)).tolist() == [6 + 5 * (3 + 4)]
    assert one(np.array([[1000]], np.float32)).tolist() == [6 + 5 * (3 * 5 + 4)]
    assert one.usual == 6 + 5 * 4


def test_moves_sum_to_the_score():
    scored = network()
    features = 3 * np.random.default_rng(1).standard_normal((100, 5)).astype(np.float32)
    sums = scored.usual + scored.moves(features).sum(axis=1)
    assert np.allclose(sums, scored(features), atol=1e-4)
    assert np.allclose(scored.moves(scored.mean[None]), 0)


def test_a_move_is_the_mean_slope_on_the_way():
    scored = network()
    point = np.array([[1, -1, 2, 0, 0.5]], np.float32)
    z = (point - scored.mean) / scored.spread
    steps = (np.arange(20_000)[:, None] + 0.5) / 20_000
    is_open = steps * (z @ scored.weight) + scored.hidden_bias > 0
    slope = (is_open.mean(axis=0) * scored.output) @ scored.weight.T
    assert np.allclose(scored.moves(point), z * slope, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean", lambda _: np.zeros(4, np.float32)),
        ("spread", lambda a: a * 0),
        ("weight", lambda a: a.astype(np.float64)),
        ("output", lambda a: a[:-1]),
        ("bias", lambda a: a * np.nan),
    ],
)
def test_damaged_tensors_are_refused(name, change):
    tensors = network().tensors()
    tensors[name] = change(tensors[name])
    with pytest.raises(ModelError):
        Network.of(tensors, 5, "a file")


def test_a_missing_tensor_is_refused():
    for name in network().tensors():
        left = {key: array for key, array in network().tensors().items() if key != name}
        with pytest.raises(ModelError):
            Network.of(left, 5, "a file")
