"""Natural language inference as classification (Yang et al. 2018, §2.2)."""

from typing import TYPE_CHECKING, Literal

from rejoinder.models.layout import CLASSES, PAIR_FEATURES
from rejoinder.training.data.examples import ClassifiedExamples, read_inference_text
from rejoinder.training.objectives.base import (
    Head,
    InferenceFiles,
    LabelledTask,
    ObjectiveKind,
    StepInputs,
)

if TYPE_CHECKING:
    from rejoinder.training.config.settings import RunConfig
    from rejoinder.training.losses.in_batch import StepLoss


class EntailmentTask(LabelledTask):
    """A classifier of pairs: entailment, neutral or contradiction."""

    objective: Literal["entailment"]
    data: InferenceFiles


def _head(config: "RunConfig") -> Head:
    sizes = config.entailment
    return Head((sizes.hidden, CLASSES), sizes.activation, inputs=PAIR_FEATURES)


def _loss(step: StepInputs) -> "StepLoss":
    from rejoinder.training.losses.entailment import classification, pair_features

    assert step.head is not None and step.labels is not None  # noqa: S101, PT018 -- the record has both
    return classification(step.head(pair_features(step.left, step.right)), step.labels)


ENTAILMENT = ObjectiveKind(
    name="entailment",
    task=EntailmentTask,
    loss=_loss,
    read=read_inference_text,
    examples=lambda _task, text: ClassifiedExamples(text.premises, text.hypotheses, text.labels),
    head=_head,
    ranks=False,
)
