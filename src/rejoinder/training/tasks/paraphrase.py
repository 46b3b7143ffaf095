"""Groups of sentences with the same meaning: a sentence finds another of its group."""

from typing import TYPE_CHECKING, Literal

from rejoinder.training.examples import GroupedExamples, read_group_text
from rejoinder.training.tasks.base import GroupFiles, LabelledTask, ObjectiveKind, StepInputs

if TYPE_CHECKING:
    from rejoinder.objectives.in_batch import StepLoss


class ParaphraseTask(LabelledTask):
    """A sentence finds another sentence of its group among those of the batch."""

    objective: Literal["paraphrase"]
    data: GroupFiles
    retrofit: bool = False
    """Move the initial rows of single words of these groups towards those of the other texts of
    their groups: of synonyms and definitions (Faruqui et al. 2015). Needs training.row_init."""


def _loss(step: StepInputs) -> "StepLoss":
    from rejoinder.objectives.in_batch import in_batch_softmax

    # neither side comes first, so each picks the other
    return in_batch_softmax(step.left, step.right, step.scale, same=step.same, symmetric=True)


PARAPHRASE = ObjectiveKind(
    name="paraphrase",
    task=ParaphraseTask,
    loss=_loss,
    read=read_group_text,
    examples=lambda _task, text: GroupedExamples(text.starts, text.members),
)
