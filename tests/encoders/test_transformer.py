"""The Transformer: padding and batches change nothing; the positions are the published ones."""

import math

import numpy as np
import pytest
import torch

from rejoinder.encoders.settings import TransformerConfig
from rejoinder.encoders.transformer import TransformerEncoder, sinusoids
from rejoinder.errors import ConfigError
from rejoinder.schema.faults import check
from rejoinder.text.ragged import Ragged

SMALL = TransformerConfig(layers=2, heads=2, hidden=16, filter=32, dim=10)


def ragged(lists):
    flat = np.array([item for row in lists for item in row], np.int32)
    return Ragged(flat, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def encoder(config=SMALL):
    return TransformerEncoder(20, config, torch.Generator().manual_seed(3))


def test_long_batches_are_cut_into_groups_that_together_are_the_batch():
    lists = [[index % 20] * (index % 90) for index in range(700)]
    model = encoder().eval()
    batch = model.collate(ragged(lists))
    assert len(batch.groups) > 1
    indices = torch.cat([group.sentences for group in batch.groups]).tolist()
    assert sorted(indices) == [index for index in range(700) if index % 90]
    assert all(group.ids.numel() <= 8_192 for group in batch.groups)


def test_order_of_words_matters():
    model = encoder().eval()
    one, other = model(model.collate(ragged([[1, 2, 3], [3, 2, 1]])))
    assert (one - other).abs().max() > 1e-3


def test_positions_are_those_of_the_timing_signal():
    signal = sinusoids(4, 6, torch.device("cpu"))
    rates = [1.0, 10_000**-0.5, 1 / 10_000]
    for position in range(4):
        angles = [position * rate for rate in rates]
        expected = [*map(math.sin, angles), *map(math.cos, angles)]
        assert signal[position].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_few_steps_bring_two_sentences_together():
    model = encoder()
    batch = model.collate(ragged([[1, 2, 3], [4, 5]]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scores = []
    for _ in range(10):
        one, other = model(batch)
        scores.append(float((one @ other).detach()))
        optimizer.zero_grad()
        (-(one @ other)).backward()
        optimizer.step()
    assert scores[-1] > scores[0] + 0.05


def test_the_defaults_are_the_papers():
    config = TransformerConfig()
    sizes = (config.layers, config.heads, config.hidden, config.filter, config.dim)
    assert sizes == (6, 8, 512, 2048, 500)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hidden": 17}, r"hidden is 17; allowed: a multiple of 2 \* heads = 16"),
        ({"layers": 0}, "layers is 0; allowed: a whole number from 1 to 256"),
        ({"dropout": 1.0}, "dropout is 1.0; allowed: a number from 0 to below 1"),
    ],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError, match=message):
        check(TransformerConfig, sizes, "test")
