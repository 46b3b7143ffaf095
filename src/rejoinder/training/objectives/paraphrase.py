"""Groups of sentences with the same meaning: a sentence finds another of its group."""

from typing import Literal

from rejoinder.training.config.tasks import GroupFiles, LabelledTask
from rejoinder.training.data.examples import GroupedExamples, read_group_text
from rejoinder.training.objectives.base import ObjectiveKind, mutual_loss


class ParaphraseTask(LabelledTask):
    """A sentence finds another sentence of its group among those of the batch."""

    objective: Literal["paraphrase"]
    data: GroupFiles
    retrofit: bool = False
    """Move the initial rows of single words of these groups towards those of the other texts of
    their groups: of synonyms and definitions (Faruqui et al. 2015). Needs training.row_init."""
    interleave: bool = False
    """Learn the initial rows of these groups' words from each two texts as one, their words in
    turns: translations stand next to each other then. Needs training.row_init."""
    inflections: bool = False
    """Move the initial rows of single words of these groups and of their regular forms (-s, -ing,
    -ed) towards each other. Needs training.row_init, and text of words."""


PARAPHRASE = ObjectiveKind(
    name="paraphrase",
    task=ParaphraseTask,
    loss=mutual_loss,
    read=read_group_text,
    examples=lambda _task, text: GroupedExamples(text.starts, text.members),
)
