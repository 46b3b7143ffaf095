"""A small objective, as a user of the package writes one; shown in docs/extend/objective.md."""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field

from rejoinder.training.data.examples import GroupedExamples, read_group_text
from rejoinder.training.losses.in_batch import StepLoss
from rejoinder.training.objectives import GroupFiles, Head, LabelledTask, ObjectiveKind


class MarginTask(LabelledTask):
    """A sentence is closer to another of its group than to the next row's, by a margin."""

    objective: Literal["margin"]
    data: GroupFiles
    margin: float = Field(default=0.3, gt=0, le=2, description="Minimum difference of cosines.")


def margin_loss(step):
    left, right = (F.normalize(step.head(side), dim=1) for side in (step.left, step.right))
    positive = (left * right).sum(dim=1)
    negative = (left * right.roll(1, dims=0)).sum(dim=1)
    loss = (step.task.margin - positive + negative).clamp(min=0).mean()
    return StepLoss(loss, (positive > negative).sum())


MARGIN = ObjectiveKind(
    name="margin",
    task=MarginTask,
    read=read_group_text,
    examples=lambda _, text: GroupedExamples(text.starts, text.members),
    head=lambda config: Head(layers=(config.encoder.dim, 8), activation="tanh"),
    loss=margin_loss,
    ranks=False,
)
