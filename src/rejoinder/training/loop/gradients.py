"""The gradient of a step: of a whole batch, or of one in small parts.

A loss over candidates of the batch needs the embeddings of all rows, not their activations. With
gradient caching (Gao et al. 2021, §3.2) the batch is encoded in small parts without gradients, the
loss gives the gradients of the embeddings, and each part is encoded again to carry its own on to
the parameters.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rejoinder.training.data.batches import Part
from rejoinder.training.loop.machine import seed_generators
from rejoinder.training.loop.model import CollatedBatch, TrainableModel
from rejoinder.training.losses.in_batch import StepLoss
from rejoinder.training.losses.joined import Joined
from rejoinder.training.workers.workers import NOBODY, Peers

_NEXT_CHUNK = 1 << 40
"""What is added to the seed of a step for each further part of a batch."""


@dataclass(frozen=True)
class Share:
    """What one worker contributes to the gradient of a step."""

    peers: Peers = NOBODY
    """The workers whose rows are one batch with its own."""
    of_all: float = 1.0
    """The weight of that batch among those of all workers."""
    joins: bool = False
    """Whether the rows of all peers are candidates of each other."""

    def joined(self, batch: CollatedBatch) -> Joined | None:
        """Returns the rows that a batch has at all peers, if their candidates are joined."""
        if not self.joins:
            return None
        parts = [Part(index, self.peers.part.count) for index in range(self.peers.part.count)]
        rows, more = (
            tuple(part.size(whole) for part in parts) for whole in (batch.all_rows, batch.more)
        )
        return Joined(self.peers, self.peers.part.index, rows, more)


def add_gradients(model: TrainableModel, batch: CollatedBatch, share: Share, seed: int) -> StepLoss:
    """Adds this worker's part of the gradient of a batch; the sum over workers is the gradient.

    Dropout draws from torch's generators, which are seeded with `seed` and the number of the part
    of the batch.

    Returns:
        The loss of the worker's rows, without gradient.
    """
    weight = share.of_all * batch.rows / batch.all_rows
    seed_generators(model.device, seed)
    embeddings, graph = _encoded(model, batch, seed)
    # joined workers wait for each other on the way back, whether a part of them has words or not
    whole = graph is not None and not share.joins
    leaf = embeddings if whole else embeddings.detach().requires_grad_()
    result = model.loss(batch, leaf, share.joined(batch))
    result.loss.backward(result.loss.new_tensor(weight))  # type: ignore[no-untyped-call]
    if not whole:
        assert leaf.grad is not None  # noqa: S101 -- the loss depends on it
        _carry_on(model, batch, graph, leaf.grad, seed)
    return StepLoss(result.loss.detach(), result.correct)


def _encoded(
    model: TrainableModel, batch: CollatedBatch, seed: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the embeddings of a batch, (N, D), and the same with a graph if there is one part."""
    if len(batch.chunks) == 1:
        embeddings = model.embed(batch.chunks[0])
        return embeddings, embeddings
    with torch.no_grad():
        parts = [_embedded(model, chunk, seed, number) for number, chunk in enumerate(batch.chunks)]
        return torch.cat(parts), None


def _carry_on(
    model: TrainableModel, batch: CollatedBatch, graph: Tensor | None, gradient: Tensor, seed: int
) -> None:
    """Carries the gradient by the embeddings on to the encoder's parameters."""
    if graph is not None:
        if graph.requires_grad:  # not if all sentences are empty
            graph.backward(gradient)  # type: ignore[no-untyped-call]
        return
    start = 0
    for number, chunk in enumerate(batch.chunks):
        embeddings = _embedded(model, chunk, seed, number)
        part = gradient[start : start + len(embeddings)]
        if embeddings.requires_grad:
            embeddings.backward(part)  # type: ignore[no-untyped-call]
        start += len(part)


def _embedded(model: TrainableModel, chunk: Any, seed: int, number: int) -> Tensor:
    """Returns the embeddings of a part of a batch; twice the same, dropout included."""
    seed_generators(model.device, seed + number * _NEXT_CHUNK)
    return model.embed(chunk)
