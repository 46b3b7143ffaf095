"""Objectives: the tables `[[tasks]]` of a config, and one record per kind, looked up by name.

To add an objective, write a module with a record, and call `register_objective`
(docs/extend/objective.md). Importing this needs no torch.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from rejoinder.encoders import settings
from rejoinder.models.config import CLASSES, PAIR_FEATURES
from rejoinder.registry import Registry
from rejoinder.training.data import examples

if TYPE_CHECKING:
    from torch import Tensor

    from rejoinder.datasets.leaks import EvaluationHashes
    from rejoinder.training.data.examples import Examples, LabelledText
    from rejoinder.training.losses.in_batch import StepInputs, StepLoss

_Label = Annotated[str, Field(max_length=200), settings.Printable]


def _task_name(value: str) -> str:
    if not re.fullmatch(r"[\w-]*", value):
        raise ValueError(f"is {settings.shown(value)}; a name is letters, digits, - and _")
    if value == "responses":
        raise ValueError('is "responses", which is the task of that objective; choose another name')
    return value


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)


class DataFile(settings.Settings):
    """A file of a task."""

    path: settings.FilledText
    """Path relative to the folder given by `--data`."""
    where: Mapping[_Label, Annotated[_Label, BeforeValidator(_json_text)]] = Field(
        default_factory=dict
    )
    """Use only rows whose fields have these values, such as `{split = "train"}`."""


class GroupFile(DataFile):
    """A file of groups of sentences with the same meaning."""

    fields: Annotated[tuple[settings.FilledText, ...], Field(max_length=100), settings.AsTuple] = ()
    """Fields whose texts form a group; by default `sentences`, or `sentence1` and `sentence2`."""


class InferenceFile(DataFile):
    """A file of labelled pairs of sentences, like SNLI."""

    share: float = Field(default=1.0, gt=0, le=1)
    """Fraction of rows to use, sampled at random, as in figure 8 of Yang et al. 2018."""
    premise: settings.FilledText = "sentence1"
    """Field of the premise; a list of premises is joined into one text."""
    hypothesis: settings.FilledText = "sentence2"
    """Field of the hypothesis."""
    label: settings.FilledText = "gold_label"
    """Field of the label."""
    labels: Mapping[_Label, Literal["entailment", "neutral", "contradiction", ""]] = Field(
        default_factory=dict
    )
    """Maps the file's labels to entailment, neutral or contradiction; rows whose label maps to ""
    are skipped."""


_AsTable = BeforeValidator(lambda value: {"path": value} if isinstance(value, str) else value)
_FILES = "Files to train on: a list of paths, or of tables with a path."


_File = TypeVar("_File", bound=DataFile)
_Files = Annotated[
    tuple[Annotated[_File, _AsTable], ...],
    Field(min_length=1, max_length=1_000, description=_FILES),
    settings.AsTuple,
]
GroupFiles = _Files[GroupFile]
InferenceFiles = _Files[InferenceFile]


class Task(settings.Settings):
    """Base class of an entry of `[[tasks]]`; extend `PairsTask` or `LabelledTask`."""

    objective: str
    share: float = Field(gt=0, le=1)
    """Share of the steps; the shares of all tasks add up to 1."""
    batch_size: int | None = Field(default=None, ge=2, le=524_288)
    """Rows per batch; by default the batch size of the phase."""
    word_dropout: settings.Probability | None = None
    """Fraction of ids dropped from each sentence at random; by default objective.word_dropout."""

    @property
    def label(self) -> str:
        """Name of the task in metrics, and of its scale."""
        return self.objective

    if TYPE_CHECKING:  # fields of labelled tasks, properties of those on pairs

        @property
        def data(self) -> tuple[DataFile, ...]:
            """Labelled files; empty for a task on pairs."""

        @property
        def power(self) -> float:
            """Exponent of a file's number of rows in its part of the task's share."""


class PairsTask(Task):
    """Base class of an entry of `[[tasks]]` that reads the pairs given by `--pairs`."""

    @property
    def data(self) -> tuple[DataFile, ...]:
        """No labelled files."""
        return ()

    @property
    def power(self) -> float:
        """Unused, as the only stream gets the full share."""
        return 1.0


class LabelledTask(Task):
    """Base class of an entry of `[[tasks]]` that reads labelled files; it needs a field `data`."""

    name: Annotated[str, Field(max_length=100), AfterValidator(_task_name)] = ""
    """Distinguishes tasks of the same objective, each with its own scale: letters, digits, - and
    _. Empty means the name of the objective."""
    power: float = Field(default=1.0, ge=0, le=4)
    """A file of n rows gets a part of the share proportional to n to this power."""

    @property
    def label(self) -> str:
        """Name of the task in metrics, and of its scale."""
        return self.name or self.objective


@dataclass(frozen=True)
class Head:
    """Dense layers after embeddings, trained by one objective and stored with the model."""

    layers: tuple[int, ...]
    """Units per layer; empty for the identity."""
    activation: settings.Activation
    inputs: int = 1
    """Width of its input, as a multiple of the embedding dimension."""
    residual: bool = False

    def describe(self) -> dict[str, Any]:
        """Its table in `config.json`, under `heads`."""
        return {
            "inputs": self.inputs,
            "layers": list(self.layers),
            "activation": self.activation,
            "residual": self.residual,
        }


def mutual_loss(step: "StepInputs") -> "StepLoss":
    """Each side of a row picks the other side in the batch, as their order has no meaning."""
    from rejoinder.training.losses.in_batch import in_batch_softmax

    return in_batch_softmax(
        step.left, step.right, step.scale, same=step.same, symmetric=True, nested=step.nested
    )


@dataclass(frozen=True, kw_only=True)
class ObjectiveKind:
    """One kind of objective: its table in a config, its data, its loss, its head."""

    name: str
    """The value of `objective` in a table of `[[tasks]]`."""
    task: type[Task]
    """The class of that table: `PairsTask`, or `LabelledTask` with a field `data`."""
    loss: "Callable[[StepInputs], StepLoss]"
    """The loss of a step."""
    read: "Callable[[Any, Path, EvaluationHashes | None], LabelledText] | None" = None
    """Reads a labelled file without its leaks; None means that the objective reads pairs."""
    examples: "Callable[[Any, Any], Examples] | None" = None
    """Makes the examples of a task from the result of `read`; None uses the result itself."""
    head: "Callable[[Any], Head] | None" = None
    """Returns the head that the objective trains for a `RunConfig`; None means no head."""
    ranks: bool = True
    """Whether it ranks the candidates in a batch. It then has a learned scale, and `loss` uses
    `same` and `nested` of its inputs, like `in_batch_softmax`."""


class ResponsesTask(PairsTask):
    """Response selection on the pairs given by `--pairs`."""

    objective: Literal["responses"]


def _response_head(config: Any) -> Head:
    return Head(config.head.layers, config.head.activation, residual=config.head.residual)


def respond(head: "Callable[[Tensor], Tensor]", embeddings: "Tensor") -> "Tensor":
    """Returns (N, D) unit rows v' = F(v) for (N, D) embeddings; zero rows stay zero."""
    import torch

    from rejoinder.encoders.nn.layers import unit_rows

    lengths = torch.linalg.vector_norm(embeddings.detach(), dim=1)
    return unit_rows(head(embeddings), lengths > 0)


def _response_loss(step: "StepInputs") -> "StepLoss":
    """Returns the loss of inputs that pick their responses.

    With `nested` dimensions it is the mean of the losses on the first N entries, for each of these
    N, and on all entries (Kusupati et al. 2022, §3). For each N, the head reads rows with zeros
    after the first N entries, and its first N outputs are used.
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


RESPONSES = ObjectiveKind(
    name="responses", task=ResponsesTask, loss=_response_loss, head=_response_head
)


class EntailmentTask(LabelledTask):
    """A classifier of pairs: entailment, neutral or contradiction (Yang et al. 2018, §2.2)."""

    objective: Literal["entailment"]
    data: InferenceFiles


def _classifier(config: Any) -> Head:
    sizes = config.entailment
    return Head((sizes.hidden, CLASSES), sizes.activation, inputs=PAIR_FEATURES)


def pair_features(premises: "Tensor", hypotheses: "Tensor") -> "Tensor":
    """Returns (B, 4 D): sqrt(D) times (u1, u2, |u1 - u2|, u1 * u2) of (B, D) unit rows.

    Yang et al. 2018, figure 3. Most entries are about 1. The products stay small, about
    1 / sqrt(D): if they were scaled up to the others, the classifier would memorise them
    (notebook/recipes.md).
    """
    import torch

    u1, u2 = premises, hypotheses
    root: float = u1.shape[1] ** 0.5
    return torch.cat([u1, u2, (u1 - u2).abs(), u1 * u2], dim=1) * root


def _entailment_loss(step: "StepInputs") -> "StepLoss":
    import torch.nn.functional as F

    from rejoinder.training.losses.in_batch import StepLoss

    assert step.head is not None and step.labels is not None  # noqa: S101, PT018 -- the record has both
    scores = step.head(pair_features(step.left, step.right))
    loss = F.cross_entropy(scores.float(), step.labels)
    return StepLoss(loss, (scores.argmax(dim=1) == step.labels).sum())


ENTAILMENT_KIND = ObjectiveKind(
    name="entailment",
    task=EntailmentTask,
    loss=_entailment_loss,
    read=examples.read_inference_text,
    head=_classifier,
    ranks=False,
)


class EntailmentRankingTask(LabelledTask):
    """Premises and the hypotheses that they entail find each other in the batch.

    Contradictions of the premises are additional candidates.
    """

    objective: Literal["entailment-ranking"]
    data: InferenceFiles


def _entailed(
    _task: EntailmentRankingTask, text: examples.InferenceText
) -> examples.EntailedExamples:
    against, entailed = text.labels == examples.CONTRADICTION, text.labels == examples.ENTAILMENT
    order = np.argsort(text.premises[against], kind="stable")
    counts = np.bincount(text.premises[against], minlength=len(text.texts))
    return examples.EntailedExamples(
        text.premises[entailed],
        text.hypotheses[entailed],
        contradictions=text.hypotheses[against][order],
        starts=np.concatenate([[0], np.cumsum(counts)]),
    )


RANKING_KIND = ObjectiveKind(
    name="entailment-ranking",
    task=EntailmentRankingTask,
    loss=mutual_loss,
    read=examples.read_inference_text,
    examples=_entailed,
)


class ParaphraseTask(LabelledTask):
    """A sentence finds another sentence of its group in the batch."""

    objective: Literal["paraphrase"]
    data: GroupFiles
    retrofit: bool = False
    """Move the initial rows of single words in these groups towards the rows of their group's other
    texts, such as synonyms and definitions (Faruqui et al. 2015). Needs training.row_init."""
    interleave: bool = False
    """Learn the initial rows of these groups' words from each two texts merged into one, with words
    alternating, so that translations are next to each other. Needs training.row_init."""
    inflections: bool = False
    """Move the initial rows of single words in these groups and of their regular forms (-s, -ing,
    -ed) towards each other. Needs training.row_init, and text of words."""


PARAPHRASE = ObjectiveKind(
    name="paraphrase", task=ParaphraseTask, loss=mutual_loss, read=examples.read_group_text
)


OBJECTIVES: Registry[ObjectiveKind] = Registry(
    "objective",
    {kind.name: kind for kind in (RESPONSES, ENTAILMENT_KIND, RANKING_KIND, PARAPHRASE)},
)
"""Every objective kind by its name. Heads are drawn in this order."""


def register_objective(kind: ObjectiveKind) -> None:
    """Adds an objective kind defined outside rejoinder.

    Raises:
        InputError: another kind has the same name.
    """
    OBJECTIVES.register(kind.name, kind)
