"""Natural language inference, as classification and as ranking."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rejoinder.models.config import CLASSES, PAIR_FEATURES
from rejoinder.training.config.tasks import InferenceFiles, LabelledTask
from rejoinder.training.data.examples import (
    CONTRADICTION,
    ENTAILMENT,
    ClassifiedExamples,
    EntailedExamples,
    InferenceText,
    read_inference_text,
)
from rejoinder.training.objectives.base import Head, ObjectiveKind, mutual_loss

if TYPE_CHECKING:
    from torch import Tensor

    from rejoinder.training.losses.in_batch import StepInputs, StepLoss


class EntailmentTask(LabelledTask):
    """A classifier of pairs: entailment, neutral or contradiction (Yang et al. 2018, §2.2)."""

    objective: Literal["entailment"]
    data: InferenceFiles


def _head(config: Any) -> Head:
    sizes = config.entailment
    return Head((sizes.hidden, CLASSES), sizes.activation, inputs=PAIR_FEATURES)


def pair_features(premises: "Tensor", hypotheses: "Tensor") -> "Tensor":
    """Returns (B, 4 D): sqrt(D) times (u1, u2, |u1 - u2|, u1 * u2) of (B, D) unit rows.

    Yang et al. 2018, figure 3. Most entries are about 1. The products stay small, about
    1 / sqrt(D): scaled up to the size of the others, they are memorised
    (notebook/recipes.md).
    """
    import torch

    u1, u2 = premises, hypotheses
    root: float = u1.shape[1] ** 0.5
    return torch.cat([u1, u2, (u1 - u2).abs(), u1 * u2], dim=1) * root


def _loss(step: "StepInputs") -> "StepLoss":
    import torch.nn.functional as F

    from rejoinder.training.losses.in_batch import StepLoss

    assert step.head is not None and step.labels is not None  # noqa: S101, PT018 -- the record has both
    scores = step.head(pair_features(step.left, step.right))
    loss = F.cross_entropy(scores.float(), step.labels)
    return StepLoss(loss, (scores.argmax(dim=1) == step.labels).sum())


ENTAILMENT_KIND = ObjectiveKind(
    name="entailment",
    task=EntailmentTask,
    loss=_loss,
    read=read_inference_text,
    examples=lambda _task, text: ClassifiedExamples(text.premises, text.hypotheses, text.labels),
    head=_head,
    ranks=False,
)


class EntailmentRankingTask(LabelledTask):
    """A premise finds the hypothesis that it entails, and this its premise, in the batch.

    Contradictions of the premises are further candidates.
    """

    objective: Literal["entailment-ranking"]
    data: InferenceFiles


def _entailed(_task: EntailmentRankingTask, text: InferenceText) -> EntailedExamples:
    against, entailed = text.labels == CONTRADICTION, text.labels == ENTAILMENT
    order = np.argsort(text.premises[against], kind="stable")
    counts = np.bincount(text.premises[against], minlength=len(text.texts))
    return EntailedExamples(
        text.premises[entailed],
        text.hypotheses[entailed],
        contradictions=text.hypotheses[against][order],
        starts=np.concatenate([[0], np.cumsum(counts)]),
    )


RANKING_KIND = ObjectiveKind(
    name="entailment-ranking",
    task=EntailmentRankingTask,
    loss=mutual_loss,
    read=read_inference_text,
    examples=_entailed,
)
