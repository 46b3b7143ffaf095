"""Response selection on the pairs given by `--pairs` (Yang et al. 2018, §2.1)."""

from typing import TYPE_CHECKING, Literal

from rejoinder.training.tasks.base import Head, ObjectiveKind, PairsTask, StepInputs, ranking_loss

if TYPE_CHECKING:
    from rejoinder.objectives.in_batch import StepLoss
    from rejoinder.training.settings import RunConfig


class ResponsesTask(PairsTask):
    """Response selection on the pairs given by `--pairs`."""

    objective: Literal["responses"]


def _head(config: "RunConfig") -> Head:
    head = config.head
    return Head(head.layers, head.activation, residual=head.residual)


def _loss(step: StepInputs) -> "StepLoss":
    from rejoinder.objectives.response_selection import respond

    assert step.head is not None  # noqa: S101 -- the record has one
    responses = respond(step.head, step.right)
    return ranking_loss(step, responses, symmetric=step.settings.symmetric)


RESPONSES = ObjectiveKind(name="responses", task=ResponsesTask, loss=_loss, head=_head)
