"""The DAN against a plain, slow reference, and its sparse gradients against dense ones."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.encoders.modules import DanEncoder
from rejoinder.encoders.nn.layers import index_bags
from rejoinder.encoders.settings import DanConfig, check
from rejoinder.errors import ConfigError
from rejoinder.text.ragged import Ragged

ROWS = 12
bags = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=6), min_size=1, max_size=7)


def ragged(lists: list[list[int]]) -> Ragged:
    flat = np.array([item for row in lists for item in row], np.int32)
    return Ragged(flat, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def encoder(**sizes: object) -> DanEncoder:
    config = DanConfig(**{"width": 5, "layers": (4, 3), **sizes})  # type: ignore[arg-type]
    return DanEncoder(ROWS, config, torch.Generator().manual_seed(1))


def slow(model: DanEncoder, table: torch.Tensor, lists: list[list[int]]) -> torch.Tensor:
    """The definition, one sentence at a time, through a dense table."""
    rows = []
    for ids in lists:
        if not ids:
            rows.append(torch.zeros(model.dim))
            continue
        power = {"sqrtn": 0.5, "mean": 1.0, "sum": 0.0}[model.config.combiner]
        x = torch.stack([table[i] for i in ids]).sum(0) / len(ids) ** power
        y = x
        for number, layer in enumerate(model.dnn.layers):
            y = layer(torch.tanh(y) if number else y)
        if model.config.residual:
            y = y + (x if model.dnn.skip is None else model.dnn.skip(x))
        rows.append(y / y.norm())
    return torch.stack(rows)


@settings(max_examples=40)
@given(lists=bags, combiner=st.sampled_from(["sqrtn", "mean", "sum"]), residual=st.booleans())
def test_embeddings_and_gradients_are_those_of_the_definition(lists, combiner, residual):
    model = encoder(combiner=combiner, residual=residual)
    index = model.collate(ragged(lists))
    weights = torch.randn(len(lists), model.dim, generator=torch.Generator().manual_seed(2))
    embeddings = model(index)
    (embeddings * weights).sum().backward()
    table = model.table.weight.detach().clone().requires_grad_()
    expected = slow(model, table, lists)
    torch.testing.assert_close(embeddings, expected, atol=1e-6, rtol=1e-5)
    if not any(lists):
        return
    (dense,) = torch.autograd.grad((expected * weights).sum(), table)
    found = model.table.take_gradient()
    rows = found.rows
    torch.testing.assert_close(found.summed(), dense[rows], atol=1e-5, rtol=1e-4)
    untouched = np.setdiff1d(np.arange(ROWS), rows.numpy())
    assert not dense[untouched].any()
    assert model.table.seen.nonzero().flatten().tolist() == rows.tolist()


def test_the_defaults_are_the_papers():
    config = DanConfig()
    assert (config.width, config.layers, config.dim) == (300, (300, 300, 500), 500)
    assert (config.activation, config.combiner, config.residual) == ("tanh", "sqrtn", False)


def test_unknown_choices_are_refused():
    sizes = {"combiner": "sqrt", "width": 0, "activation": "tan"}
    with pytest.raises(ConfigError) as caught:
        check(DanConfig, sizes, "test")
    _, *lines = str(caught.value).splitlines()
    for line, facts in zip(
        lines,
        [
            ("width", "1", "0"),
            ("activation", "'gelu', 'none', 'relu' or 'tanh'", '"tan"'),
            ("combiner", "'sqrtn', 'mean' or 'sum'", '"sqrt"'),
        ],
        strict=True,
    ):
        assert [fact for fact in facts if fact not in line] == []


def test_index_bags_lists_rows_once():
    index = index_bags(ragged([[3, 1, 3], [], [1]]))
    assert index.rows.tolist() == [1, 3]
    assert index.ids.tolist() == [3, 1, 3, 1]
    assert index.bags.tolist() == [0, 2, 0, 0]
    assert index.row_offsets.tolist() == [0, 2, 4]
    assert index.counts.tolist() == [3, 0, 1]
