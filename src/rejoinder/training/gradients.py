"""The gradient of a step: of a whole batch, of one in small parts, of several workers' rows.

A loss over candidates of the batch needs the embeddings of all rows, not their activations. With
gradient caching (Gao et al. 2021, §3.2) the batch is encoded in small parts without gradients, the
loss gives the gradients of the embeddings, and each part is encoded again to carry its own on to
the parameters. Embeddings of other workers' rows enter the loss in the same way: each worker
computes the loss of all rows, and carries on the gradients of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rejoinder.objectives.in_batch import StepLoss
from rejoinder.training.machine import seed_generators
from rejoinder.training.model import CollatedBatch, TrainableModel, split_sides
from rejoinder.training.workers import NOBODY, Peers

_NEXT_CHUNK = 1 << 40
"""What is added to the seed of a step for each further part of a batch."""


@dataclass(frozen=True)
class Share:
    """What one worker contributes to the gradient of a step."""

    peers: Peers = NOBODY
    """The workers whose rows are one batch with its own."""
    of_all: float = 1.0
    """The weight of that batch among those of all workers."""
    joined: bool = False
    """Whether the rows of all peers are candidates of each other."""


def add_gradients(
    model: TrainableModel, batch: CollatedBatch, share: Share, seed: int
) -> tuple[StepLoss, float]:
    """Adds this worker's part of the gradient of a batch; the sum over workers is the gradient.

    Dropout draws from torch's generators, which are seeded with `seed` and the number of the part
    of the batch.

    Returns:
        The loss, without gradient, and the number of rows that it counts for: the rows of the
        worker, or where rows are joined an equal part of all.
    """
    peers = share.peers.part
    weight = share.of_all * (1.0 if share.joined else batch.rows / batch.all_rows)
    seed_generators(model.device, seed)
    if len(batch.chunks) == 1 and not share.joined:
        result = model.loss(batch)
        result.loss.backward(result.loss.new_tensor(weight))  # type: ignore[no-untyped-call]
        return _detached(result), batch.rows
    embeddings, graph = _encoded(model, batch, seed)
    leaf = embeddings.detach().requires_grad_()
    result = model.loss_of(batch, *_sides(leaf, batch, share))
    result.loss.backward(result.loss.new_tensor(weight))  # type: ignore[no-untyped-call]
    if share.joined:  # every peer has the whole gradient of what follows the embeddings
        for parameter in model.after_embedding(batch.task):
            if parameter.grad is not None:
                parameter.grad /= peers.count
    assert leaf.grad is not None  # noqa: S101 -- the loss depends on it
    _carry_on(model, batch, graph, leaf.grad, seed)
    return _detached(result), batch.all_rows / peers.count if share.joined else batch.rows


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
        graph.backward(gradient)  # type: ignore[no-untyped-call]
        return
    start = 0
    for number, chunk in enumerate(batch.chunks):
        embeddings = _embedded(model, chunk, seed, number)
        part = gradient[start : start + len(embeddings)]
        if embeddings.requires_grad:  # not if all sentences of a part are empty
            embeddings.backward(part)  # type: ignore[no-untyped-call]
        start += len(part)


def _embedded(model: TrainableModel, chunk: Any, seed: int, number: int) -> Tensor:
    """Returns the embeddings of a part of a batch; twice the same, dropout included."""
    seed_generators(model.device, seed + number * _NEXT_CHUNK)
    return model.embed(chunk)


def _sides(embeddings: Tensor, batch: CollatedBatch, share: Share) -> tuple[Tensor, Tensor]:
    """Returns the left sides, and the right sides with all further candidates behind them."""
    if not share.joined or share.peers.part.count == 1:
        return split_sides(embeddings, batch.rows)
    sizes = [
        (_length(batch.all_rows, share.peers, index), _length(batch.more, share.peers, index))
        for index in range(share.peers.part.count)
    ]
    found = _Gather.apply(embeddings, share.peers, [2 * rows + more for rows, more in sizes])  # type: ignore[no-untyped-call]
    left, right, others = [], [], []
    for part, (rows, _) in zip(found, sizes, strict=True):
        left.append(part[:rows])
        right.append(part[rows : 2 * rows])
        others.append(part[2 * rows :])
    return torch.cat(left), torch.cat(right + others)


def _length(size: int, peers: Peers, index: int) -> int:
    part = type(peers.part)(index, peers.part.count).of(size)
    return int(part.stop - part.start)


class _Gather(torch.autograd.Function):
    """Rows of all peers, who all compute the same loss: each has the gradient of its own rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, peers: Peers, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        ctx.index = peers.part.index
        padded = own.new_zeros(max(sizes), own.shape[1])
        padded[: len(own)] = own
        parts = peers.gather(padded)
        return tuple(part[:size] for part, size in zip(parts, sizes, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[ctx.index], None, None


def _detached(result: StepLoss) -> StepLoss:
    return StepLoss(result.loss.detach(), result.correct)
