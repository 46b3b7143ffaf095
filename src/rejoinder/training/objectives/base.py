"""The record of an objective kind, and the tables that all tasks of a config share.

Importing this needs no torch.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from rejoinder.io.schema import (
    AsTuple,
    FilledText,
    Printable,
    Probability,
    Settings,
    toml_value,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from rejoinder.datasets.leaks.hashes import EvaluationHashes
    from rejoinder.encoders.settings import Activation
    from rejoinder.training.config.settings import ObjectiveConfig, RunConfig
    from rejoinder.training.data.examples import Examples, LabelledText
    from rejoinder.training.data.pair_rows import PairRows
    from rejoinder.training.losses.in_batch import StepLoss
    from rejoinder.training.losses.joined import Joined

_Label = Annotated[str, Field(max_length=200), Printable]


def _as_table(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _task_name(value: str) -> str:
    if not re.fullmatch(r"[\w-]*", value):
        raise ValueError(f"is {toml_value(value)}; a name is letters, digits, - and _")
    if value == "responses":
        raise ValueError('is "responses", which is the task of that objective; choose another name')
    return value


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)


class DataFile(Settings):
    """A file of a task."""

    path: FilledText
    """Path below the folder given by `--data`."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Fraction of rows used, sampled at random (for ablations)."""
    where: Mapping[_Label, Annotated[_Label, BeforeValidator(_json_text)]] = Field(
        default_factory=dict
    )
    """Only rows whose fields have these values are used, such as `{split = "train"}`."""


class GroupFile(DataFile):
    """A file of groups of sentences with the same meaning."""

    fields: Annotated[tuple[FilledText, ...], Field(max_length=100), AsTuple] = ()
    """Fields whose texts are a group; by default `sentences`, or `sentence1` and `sentence2`."""


class InferenceFile(DataFile):
    """A file of pairs of sentences with a label, as SNLI's."""

    premise: FilledText = "sentence1"
    """Field of the premise; a list of premises is read as one text."""
    hypothesis: FilledText = "sentence2"
    """Field of the hypothesis."""
    label: FilledText = "gold_label"
    """Field of the label."""
    labels: Mapping[_Label, Literal["entailment", "neutral", "contradiction", ""]] = Field(
        default_factory=dict
    )
    """Maps the file's labels to entailment, neutral or contradiction; rows whose label maps to ""
    are skipped."""


_FILES = "Files to train on: a list of paths, or of tables with a path."


_File = TypeVar("_File", bound=DataFile)
_Files = Annotated[
    tuple[Annotated[_File, BeforeValidator(_as_table)], ...],
    Field(min_length=1, max_length=1_000, description=_FILES),
    AsTuple,
]
GroupFiles = _Files[GroupFile]
InferenceFiles = _Files[InferenceFile]


class Task(Settings):
    """Base class of an entry of `[[tasks]]`; extend `PairsTask` or `LabelledTask`."""

    objective: str
    share: float = Field(gt=0, le=1)
    """Share of the steps; the shares of all tasks add up to 1."""
    batch_size: int | None = Field(default=None, ge=2, le=1_048_576)
    """Rows per batch; by default that of the phase."""
    word_dropout: Probability | None = None
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
            """Exponent of the number of rows by which files divide the task's share."""


class PairsTask(Task):
    """Base class of an entry of `[[tasks]]` that reads the pairs given by `--pairs`."""

    @property
    def data(self) -> tuple[DataFile, ...]:
        """No labelled files."""
        return ()

    @property
    def power(self) -> float:
        """Has no effect on a single stream, which gets the whole share."""
        return 1.0


class LabelledTask(Task):
    """Base class of an entry of `[[tasks]]` that reads labelled files; it needs a field `data`."""

    name: Annotated[str, Field(max_length=100), AfterValidator(_task_name)] = ""
    """Distinguishes tasks of the same objective, each with its own scale; letters, digits, - and
    _. Empty means the name of the objective."""
    power: float = Field(default=1.0, ge=0, le=4)
    """A file of n rows gets a part of the share proportional to n to this power."""

    @property
    def label(self) -> str:
        """Name of the task in metrics, and of its scale."""
        return self.name or self.objective


@dataclass(frozen=True)
class Head:
    """Dense layers behind embeddings, trained by one objective and stored with the model."""

    layers: tuple[int, ...]
    """Units of its layers; empty for the identity."""
    activation: "Activation"
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


@dataclass(frozen=True)
class StepInputs:
    """Inputs of the loss of a step on B rows."""

    left: "Tensor"
    """(B, D) float32, unit rows: inputs, premises, or first sentences."""
    right: "Tensor"
    """(B + E, D) float32, unit rows: their counterparts, followed by E further candidates."""
    labels: "Tensor | None"
    """(B,) int64 classes of the rows, where the examples have labels."""
    same: "Tensor | None"
    """(2, M) int64, pairs that are no true negatives; see `training.losses.in_batch`."""
    scale: "Tensor"
    """() float32, learned scale of the task; unused by objectives without one."""
    head: "nn.Module | None"
    """The head of the objective, where it has one."""
    task: Any
    """The task's table."""
    settings: "ObjectiveConfig"
    """The table `[objective]` of the config."""
    nested: tuple[int, ...] = ()
    """`training.nested_dims` for an objective that `nests`, else empty."""
    joined: "Joined | None" = None
    """With `objective.gather_across_workers`, the rows of all workers."""


def ranking_loss(step: StepInputs, candidates: "Tensor", *, symmetric: bool) -> "StepLoss":
    """Each left side picks its own among the candidates, (B + E, D), of the batch.

    With `symmetric`, each of the first B candidates also picks its left side.
    """
    from rejoinder.training.losses.in_batch import in_batch_softmax

    return in_batch_softmax(
        *(step.left, candidates, step.scale),
        same=step.same,
        symmetric=symmetric,
        nested=step.nested,
        joined=step.joined,
    )


def mutual_loss(step: StepInputs) -> "StepLoss":
    """Each side of a row picks the other among those of the batch, as neither comes first."""
    return ranking_loss(step, step.right, symmetric=True)


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
    """Makes the examples of a task from what `read` returned."""
    rows: "Callable[[Any], PairRows] | None" = None
    """Makes the rows of a task from pairs; None means a message and its reply."""
    head: "Callable[[RunConfig], Head] | None" = None
    """The head that the objective trains; None means that it has none."""
    ranks: bool = True
    """Whether it ranks candidates of the batch. It then has a learned scale, and `loss` heeds
    `StepInputs.same` and `StepInputs.joined`, as `ranking_loss` does."""
    nests: bool = False
    """Whether `loss` also trains `StepInputs.nested`. If not, `loss` of an objective that ranks is
    called once per number of dimensions, which is slower."""
