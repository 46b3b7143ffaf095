"""The trained parameters in one module: losses of nested dimensions."""

import numpy as np
import pytest
import torch

from rejoinder.text.ragged import Ragged
from rejoinder.training.config.loading import load_config
from rejoinder.training.data.preparation import MixedBatch
from rejoinder.training.data.stream import Batch, Position
from rejoinder.training.loop.model import TrainableModel
from rejoinder.training.losses import in_batch
from rejoinder.training.objectives import OBJECTIVES

SIZES = ["encoder.width=8", "head.layers=[8, 8]", "training.precision=fp32"]


def loss_and_model(*settings, shipped="demo", task=0):
    """The loss of four pairs of random words, and the model."""
    config = load_config(shipped, [*SIZES, *settings])
    generator = np.random.default_rng(0)
    sentences = Ragged(generator.integers(0, 50, 32).astype(np.int32), np.arange(0, 33, 4))
    batch = Batch(sentences, np.arange(4), np.arange(4, 8), Position())
    model = TrainableModel(50, config, torch.Generator().manual_seed(0)).eval()
    collated = model.collate(MixedBatch(config.mixture[task], "responses", batch))
    return model.loss(collated, model.embed(collated.chunks[0])).loss, model, collated


def plain_loss(u, v, scale):
    """Cross-entropy of the right reply among those of the batch, by plain operations."""
    return torch.nn.functional.cross_entropy(scale * u @ v.T, torch.arange(len(u)))


def test_nested_dimensions_train_the_first_entries_too():
    plain, _, _ = loss_and_model()
    nested, model, collated = loss_and_model("training.nested_dims=[2, 5]")
    rows = model.encoder(collated.chunks[0])
    losses = [plain]
    for dim in (2, 5):
        u, v = (torch.nn.functional.normalize(part[:, :dim]) for part in rows.split(4))
        padded = torch.cat([v, torch.zeros(4, 8 - dim)], dim=1)
        replies = torch.nn.functional.normalize(model.heads["responses"](padded)[:, :dim])
        losses.append(plain_loss(u, replies, model.scale()))
    torch.testing.assert_close(nested, torch.stack(losses).mean())
    nested.backward()
    assert all(p.grad.any() for p in model.heads["responses"].parameters())


RANKING = [
    number
    for number, task in enumerate(load_config("dan-best").mixture)
    if OBJECTIVES[task.objective].ranks and task.objective != "responses"
]


@pytest.mark.parametrize("task", RANKING)
def test_dan_best_trains_all_nested_dimensions_in_one_softmax(task, monkeypatch):
    calls = []
    apply = in_batch._InBatchSoftmax.apply
    monkeypatch.setattr(
        in_batch._InBatchSoftmax, "apply", lambda *inputs: calls.append(inputs) or apply(*inputs)
    )
    nested, model, collated = loss_and_model(
        "training.nested_dims=[2, 5]", shipped="dan-best", task=task
    )
    assert len(calls) == 1
    u, v = model.encoder(collated.chunks[0]).split(4)
    losses = []
    for dim in (2, 5, 8):
        one, other = (torch.nn.functional.normalize(side[:, :dim]) for side in (u, v))
        scale = model.scale(collated.task.label)
        losses += [plain_loss(one, other, scale), plain_loss(other, one, scale)]
    torch.testing.assert_close(nested, torch.stack(losses).mean())
