"""Response selection on the pairs given by `--pairs` (Yang et al. 2018, §2.1)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rejoinder.training.config.tasks import PairsTask
from rejoinder.training.objectives.base import Head, ObjectiveKind

if TYPE_CHECKING:
    from torch import Tensor

    from rejoinder.training.losses.in_batch import StepInputs, StepLoss


class ResponsesTask(PairsTask):
    """Response selection on the pairs given by `--pairs`."""

    objective: Literal["responses"]


def _head(config: Any) -> Head:
    head = config.head
    return Head(head.layers, head.activation, residual=head.residual)


def respond(head: "Callable[[Tensor], Tensor]", embeddings: "Tensor") -> "Tensor":
    """Returns (N, D) v' = F(v), unit rows, of (N, D) embeddings; zero rows stay zero."""
    import torch

    from rejoinder.encoders.nn.dense import unit_rows

    lengths = torch.linalg.vector_norm(embeddings.detach(), dim=1)
    return unit_rows(head(embeddings), lengths > 0)


def _loss(step: "StepInputs") -> "StepLoss":
    """Returns the loss of inputs that pick their responses.

    With `nested` dimensions it is the mean over the first N entries, for each of these N, and all
    of them (Kusupati et al. 2022, §3). The head, too, returns as many, of rows with zeros after
    them.
    """
    import torch
    import torch.nn.functional as F

    from rejoinder.training.losses.in_batch import StepLoss, in_batch_softmax

    assert step.head is not None  # noqa: S101 -- the record has one

    def loss(left: "Tensor", responses: "Tensor") -> StepLoss:
        return in_batch_softmax(left, responses, step.scale, same=step.same)

    whole = loss(step.left, respond(step.head, step.right))
    if not step.nested:
        return whole
    parts = [whole.loss]
    for dim in step.nested:
        left, right = (F.normalize(side[:, :dim], dim=1) for side in (step.left, step.right))
        parts.append(loss(left, respond(step.head.first_entries, right)).loss)
    return StepLoss(torch.stack(parts).mean(), whole.correct)


RESPONSES = ObjectiveKind(name="responses", task=ResponsesTask, loss=_loss, head=_head)
