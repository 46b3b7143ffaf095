"""Gradient caching: the step of a batch in small parts is that of the batch as a whole."""

import shutil

import numpy as np
import pytest
import torch

from rejoinder.errors import InputError
from rejoinder.text.ragged import Ragged, offsets_of
from rejoinder.training.config.loading import parse_config
from rejoinder.training.data.preparation import MixedBatch
from rejoinder.training.data.stream import Batch, Position
from rejoinder.training.loop.loop import add_gradients
from rejoinder.training.loop.model import Optimizers, TrainableModel
from rejoinder.training.workers import compile_blocks
from runs import BILSTM, DAN, MULTITASK, TRANSFORMER

ROWS = 80
SIZE = 23


def batch_of(labels=False, more=5):
    draw = np.random.default_rng(5)
    lengths = draw.integers(0, 9, 2 * SIZE + more)
    lengths[40:] = 0  # sentences without known words, a part of them alone
    sentences = Ragged(draw.integers(0, ROWS, lengths.sum()).astype(np.int32), offsets_of(lengths))
    keys = draw.integers(0, 15, (2, SIZE))  # some are equal: these are masked
    classes = draw.integers(0, 3, SIZE) if labels else None
    return Batch(sentences, *keys, Position(), classes)


def step_of(tree, mini_batch_size, number=0, seed=1):
    """The result of a step and its gradients, dense ones and those of whole tables."""
    tree = {**tree, "training": {**tree["training"], "mini_batch_size": mini_batch_size}}
    tree["training"].pop("row_init", None)
    config = parse_config(tree, "test")
    model = TrainableModel(ROWS, config, torch.Generator().manual_seed(2)).train()
    optimizers = Optimizers(
        [p for p in model.parameters() if p.requires_grad], model.encoder.tables(), config.optimizer
    )
    task = config.mixture[number]
    labelled = task.objective == "entailment"
    collated = model.collate(MixedBatch(task, "a stream", batch_of(labelled, 0 if labelled else 5)))
    result = add_gradients(model, collated, seed)
    optimizers.collect()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    for table in optimizers.rows:
        dense = torch.zeros_like(table.table.weight)
        found["table"] = dense.index_copy(0, table.pending.rows, table.pending.summed())
    return result, found


def without_dropout(tree):
    encoder = {name: value for name, value in tree["encoder"].items() if name != "dropout"}
    tree = {**tree, "encoder": encoder, "training": {**tree["training"]}}
    tasks = [{k: v for k, v in t.items() if k != "retrofit"} for t in tree.get("tasks", [])]
    tree["training"].pop("row_init", None)
    return {**tree, "tasks": tasks} if tasks else tree


# float32 again: products and sums of 51 sentences in parts are rounded otherwise than at once
def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, gradient in one.items():
        limit = 2e-5 * gradient.abs().max() + 1e-9
        assert (gradient - other[name]).abs().max() <= limit, name


@pytest.mark.parametrize("tree", [DAN, TRANSFORMER, BILSTM], ids=["dan", "transformer", "bilstm"])
@pytest.mark.parametrize("rows", [1, 7, 23, 100])
def test_a_batch_in_parts_has_the_gradient_of_the_whole(tree, rows):
    whole, plain = step_of(without_dropout(tree), 0)
    result, cached = step_of(without_dropout(tree), rows)
    assert torch.allclose(whole.loss, result.loss, rtol=1e-6)
    assert whole.correct == result.correct
    assert all(gradient.any() for gradient in plain.values())
    same(plain, cached)


@pytest.mark.parametrize("number", range(len(MULTITASK["tasks"])))
def test_every_objective_can_be_cached(number):
    tree = without_dropout(MULTITASK)
    same(step_of(tree, 0, number)[1], step_of(tree, 6, number)[1])


@pytest.mark.slow  # compiles for a minute
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_compiled_blocks_have_the_gradients_of_plain_ones_in_parts_too(monkeypatch):
    tree = {**TRANSFORMER, "encoder": {**TRANSFORMER["encoder"], "dropout": 0.3}}
    before = TrainableModel.__init__

    def compiled(self, *arguments):
        before(self, *arguments)
        compile_blocks(self.get_submodule("encoder"))

    for mini_batch_size in (0, 10):
        plain, expected = step_of(tree, mini_batch_size)
        with monkeypatch.context() as patch:
            patch.setattr(TrainableModel, "__init__", compiled)
            result, found = step_of(tree, mini_batch_size)
        torch.testing.assert_close(result.loss, plain.loss, atol=1e-5, rtol=1e-5)
        assert found.keys() == expected.keys()
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, expected[name], atol=2e-5, rtol=1e-3)


def test_compiling_needs_a_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"needs a C\+\+ compiler; install g"):
        compile_blocks(torch.nn.Module())


def test_dropout_draws_the_same_twice(monkeypatch):
    seen: list[torch.Tensor] = []
    before = TrainableModel.embed

    def embed(self, chunk):
        embeddings = before(self, chunk)
        seen.append(embeddings.detach())
        return embeddings

    monkeypatch.setattr(TrainableModel, "embed", embed)
    tree = {**TRANSFORMER, "encoder": {**TRANSFORMER["encoder"], "dropout": 0.3}}
    step_of(tree, 10)
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert len(first) > 1
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    step_of(tree, 10, seed=2)
    assert not torch.equal(seen[-3], second[-3])


def test_a_run_in_parts_learns_the_same(train, tmp_path):
    scores = []
    for rows in (0, 20):
        tree = {**DAN, "training": {**DAN["training"], "mini_batch_size": rows}}
        _, told = train(tree, tmp_path / str(rows))
        scores.append(told.scores[-1][1]["norm"])
    assert scores[0] == pytest.approx(scores[1], rel=0.01)
