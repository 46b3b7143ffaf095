"""Natural language inference as ranking: a premise finds the hypothesis that it entails."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from rejoinder.training.data.examples import (
    CONTRADICTION,
    ENTAILMENT,
    EntailedExamples,
    InferenceText,
    read_inference_text,
)
from rejoinder.training.objectives.base import (
    InferenceFiles,
    LabelledTask,
    ObjectiveKind,
    StepInputs,
    ranking_loss,
)

if TYPE_CHECKING:
    from rejoinder.training.losses.in_batch import StepLoss


class EntailmentRankingTask(LabelledTask):
    """A premise finds the hypothesis that it entails among those of the batch."""

    objective: Literal["entailment-ranking"]
    data: InferenceFiles
    hard_negatives: bool = True
    """Add contradictions of the premises as candidates."""
    symmetric: bool = True
    """Also pick the right premise for each entailed hypothesis."""


def _examples(task: EntailmentRankingTask, text: InferenceText) -> EntailedExamples:
    against = (text.labels == CONTRADICTION) & task.hard_negatives
    order = np.argsort(text.premises[against], kind="stable")
    counts = np.bincount(text.premises[against], minlength=len(text.texts))
    entailed = text.labels == ENTAILMENT
    return EntailedExamples(
        text.premises[entailed],
        text.hypotheses[entailed],
        contradictions=text.hypotheses[against][order],
        starts=np.concatenate([[0], np.cumsum(counts)]),
    )


def _loss(step: StepInputs) -> "StepLoss":
    return ranking_loss(step, step.right, symmetric=step.task.symmetric)


ENTAILMENT_RANKING = ObjectiveKind(
    name="entailment-ranking",
    task=EntailmentRankingTask,
    loss=_loss,
    read=read_inference_text,
    examples=_examples,
    nests=True,
)
