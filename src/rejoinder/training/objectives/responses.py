"""Response selection on the pairs given by `--pairs` (Yang et al. 2018, §2.1)."""

from typing import TYPE_CHECKING, Literal

from rejoinder.training.objectives.base import (
    Head,
    ObjectiveKind,
    PairsTask,
    StepInputs,
    ranking_loss,
)

if TYPE_CHECKING:
    from rejoinder.training.config.settings import RunConfig
    from rejoinder.training.losses.in_batch import StepLoss


class ResponsesTask(PairsTask):
    """Response selection on the pairs given by `--pairs`."""

    objective: Literal["responses"]


def _head(config: "RunConfig") -> Head:
    head = config.head
    return Head(head.layers, head.activation, residual=head.residual)


def _loss(step: StepInputs) -> "StepLoss":
    from rejoinder.training.losses.response_selection import respond

    assert step.head is not None  # noqa: S101 -- the record has one
    responses = respond(step.head, step.right)
    return ranking_loss(step, responses, symmetric=step.settings.symmetric)


RESPONSES = ObjectiveKind(name="responses", task=ResponsesTask, loss=_loss, head=_head)
