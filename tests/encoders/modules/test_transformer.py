"""The Transformer: padding, packs and batches change nothing; positions are the published ones."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rejoinder.encoders.modules import TransformerEncoder, attention, sinusoids
from rejoinder.encoders.nn.layers import encode_parts, pad_groups
from rejoinder.encoders.settings import TransformerConfig, check
from rejoinder.errors import ConfigError
from rejoinder.text.ragged import Ragged

SMALL = TransformerConfig(layers=2, heads=2, hidden=16, filter=32, dim=10)
NO_DROPOUT = TransformerConfig(layers=2, heads=2, hidden=16, filter=32, dim=10, dropout=0.0)


def ragged(lists):
    flat = np.array([item for row in lists for item in row], np.int32)
    return Ragged(flat, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def encoder(config=SMALL):
    return TransformerEncoder(20, config, torch.Generator().manual_seed(3))


def test_long_batches_are_cut_into_packs_that_together_are_the_batch():
    lists = [[index % 20] * (index % 90) for index in range(900)]
    batch = encoder().collate(ragged(lists))
    assert len(batch.parts) > 1
    assert sorted(batch.order.tolist()) == [index for index in range(900) if index % 90]
    for pack in batch.parts:
        tokens = sum(len(group.slots) for group in pack.groups)
        assert tokens <= 32_768
        assert len(pack.ids) == len(pack.positions) == tokens
        assert all(group.present.numel() <= 8_192 for group in pack.groups)
    found = torch.cat([pack.ids for pack in batch.parts])
    expected = [item for index in batch.order.tolist() for item in lists[index]]
    assert found.tolist() == expected


def test_packed_batches_have_the_vectors_and_gradients_of_padded_ones():
    random = np.random.default_rng(1)
    lists = [random.integers(0, 20, size).tolist() for size in random.integers(0, 30, 200)]
    packed, padded = encoder(NO_DROPOUT), encoder(NO_DROPOUT)
    vectors = packed(packed.collate(ragged(lists)), normalize=False)
    batch = pad_groups(ragged(lists), 500, 3)
    expected = encode_parts(batch, padded.encode_group, SMALL.dim, normalize=False)
    assert torch.allclose(vectors, expected, atol=1e-5)
    vectors.square().mean().backward()
    expected.square().mean().backward()
    for one, other in zip(packed.parameters(), padded.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-3, atol=1e-6)


def test_a_pack_says_where_its_sentences_begin():
    (pack,) = encoder().collate(ragged([[1, 2, 3], [4], [], [5, 6]])).parts
    assert pack.ids.tolist() == [4, 5, 6, 1, 2, 3]
    assert pack.offsets.tolist() == [0, 1, 3, 6]
    assert pack.longest == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("low", "limit"), [(False, 1e-3), (True, 2e-2)], ids=["fp32", "bf16"])
def test_a_gpu_gives_the_vectors_and_gradients_of_the_cpu(low, limit):
    random = np.random.default_rng(1)
    batch = ragged([random.integers(0, 20, n).tolist() for n in random.integers(0, 90, 300)])
    target = torch.randn(300, NO_DROPOUT.dim, generator=torch.Generator().manual_seed(2))
    found = {}
    for name in ("cpu", "cuda"):
        model = encoder(NO_DROPOUT).to(name)
        with torch.autocast("cuda", torch.bfloat16, enabled=low):
            vectors = model(model.collate(batch).to(torch.device(name)))
        (vectors * target.to(name)).sum().backward()
        found[name] = [vectors, *(parameter.grad for parameter in model.parameters())]
    for one, other in zip(*found.values(), strict=True):
        assert (one - other.cpu()).norm() <= limit * one.norm() + 1e-3


def test_attention_is_that_of_pytorch():
    generator = torch.Generator().manual_seed(5)
    query, key, value = torch.randn(3, 2, 4, 7, 8, generator=generator)
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[1, ..., 5:] = False
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert torch.allclose(attention(query, key, value, mask), expected, atol=1e-6)


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
        ({"layers": 0}, "layers.* 1; found 0"),
        ({"dropout": 1.0}, r"dropout.* 1; found 1\.0"),
    ],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError, match=message):
        check(TransformerConfig, sizes, "test")
