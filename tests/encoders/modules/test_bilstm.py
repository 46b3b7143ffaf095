"""The BiLSTM against gates written out, one sentence at a time; what batches must not change."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.encoders.modules import BilstmEncoder
from rejoinder.encoders.settings import BilstmConfig, check
from rejoinder.errors import ConfigError
from rejoinder.text.ragged import Ragged

ROWS = 12
sentences = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=9), min_size=1, max_size=8)


def ragged(lists):
    flat = np.array([item for row in lists for item in row], np.int32)
    return Ragged(flat, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def encoder(*, shift=0.0, **sizes):
    """With `shift`, biases of the output gate and the candidate, which push all states down."""
    config = BilstmConfig(**{"width": 5, "hidden": 4, **sizes})
    model = BilstmEncoder(ROWS, config, torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.table.weight.mul_(3)  # gates that are not all near a half
        for lstm in (model.forwards, model.backwards):
            lstm.bias_ih_l0[2 * config.hidden : 3 * config.hidden] -= shift
    return model


def slow_states(lstm, rows):
    """The published gates: input, forget, candidate, output; states start at zero."""
    hidden = lstm.hidden_size
    h, c, states = torch.zeros(hidden), torch.zeros(hidden), []
    for row in rows:
        gates = lstm.weight_ih_l0 @ row + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ h + lstm.bias_hh_l0
        i, f, g, o = gates.split(hidden)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return states


def slow(model, table, lists):
    out = []
    for ids in lists:
        ids = ids[: model.config.max_tokens]
        if not ids:
            out.append(torch.zeros(model.dim))
            continue
        rows = [table[i] for i in ids]
        forth = slow_states(model.forwards, rows)
        back = slow_states(model.backwards, rows[::-1])[::-1]
        states = [torch.cat(both) for both in zip(forth, back, strict=True)]
        pooled = torch.stack(states).max(dim=0).values
        y = pooled if model.projection is None else model.projection(pooled)
        out.append(y / y.norm())
    return torch.stack(out)


@settings(max_examples=40)
@given(
    lists=sentences,
    dim=st.sampled_from([0, 3]),
    shift=st.sampled_from([0.0, 5.0]),
    most=st.sampled_from([4, 128]),
)
def test_embeddings_and_gradients_are_those_of_the_definition(lists, dim, shift, most):
    model = encoder(dim=dim, shift=shift, max_tokens=most)
    embeddings = model(model.collate(ragged(lists)))
    table = model.table.weight.detach().clone().requires_grad_()
    expected = slow(model, table, lists)
    torch.testing.assert_close(embeddings, expected, atol=1e-5, rtol=0)
    if not any(lists):
        return
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    parameters = list(model.parameters())
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    dense, *wanted = torch.autograd.grad((expected * weights).sum(), [table, *learned])
    (embeddings * weights).sum().backward()
    found = model.table.take_gradient()
    rows = found.rows
    torch.testing.assert_close(found.summed(), dense[rows], atol=1e-5, rtol=1e-4)
    assert not dense[np.setdiff1d(np.arange(ROWS), rows.numpy())].any()
    assert model.table.seen.nonzero().flatten().tolist() == rows.tolist()
    for parameter, gradient in zip(learned, wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-4)


def test_the_maximum_knows_nothing_of_padding():
    model = encoder(shift=5.0).eval()
    both = model(model.collate(ragged([[1], [2, 3, 4, 5, 6, 7]])))
    # all states are below zero: a zero after the first sentence would be its maximum
    assert (both[0] < 0).all()
    torch.testing.assert_close(both[:1], model(model.collate(ragged([[1]]))), atol=1e-6, rtol=0)


def test_long_batches_are_cut_into_groups_that_together_are_the_batch():
    lists = [[index % ROWS] * (index % 90) for index in range(700)]
    model = encoder().eval()
    batch = model.collate(ragged(lists))
    assert len(batch.padded.parts) > 1
    assert sorted(batch.padded.order.tolist()) == [index for index in range(700) if index % 90]
    with torch.no_grad():
        whole, alone = model(batch), model(model.collate(ragged(lists[85:86])))
    torch.testing.assert_close(whole[85:86], alone, atol=1e-5, rtol=0)


def test_words_beyond_the_bound_are_not_read():
    model = encoder(max_tokens=3).eval()
    batch = model.collate(ragged([[1, 2, 3, 4, 5], [1, 2, 3], [], [1, 2]]))
    assert batch.rows.tolist() == [1, 2, 3]
    embeddings = model(batch)
    torch.testing.assert_close(embeddings[0], embeddings[1], atol=1e-6, rtol=0)
    assert (embeddings[0] - embeddings[3]).abs().max() > 1e-3


def test_order_of_words_matters():
    model = encoder().eval()
    forward, reversed_ = model(model.collate(ragged([[1, 2, 3], [3, 2, 1]])))
    assert (forward - reversed_).abs().max() > 1e-3


def test_the_defaults_are_the_published_ones():
    config = BilstmConfig()
    assert (config.width, config.hidden, config.dim) == (300, 2048, 4096)
    assert not config.projected
    assert BilstmConfig(hidden=8, dim=5).projected
    assert BilstmConfig(hidden=8, dim=16) == BilstmConfig(hidden=8)


@pytest.mark.parametrize("sizes", [{"hidden": 0}, {"width": 0}, {"dim": -1}, {"max_tokens": 0}])
def test_impossible_sizes_are_refused(sizes):
    [name] = sizes
    with pytest.raises(ConfigError, match=rf"^test: {name} .*greater.*found"):
        check(BilstmConfig, sizes, "test")
