"""What a config says of tasks: one table for each objective, with the files that it learns from."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rejoinder.schema.base import AsTuple, FilledText, Printable, Probability, Settings, tagged
from rejoinder.schema.toml import toml_value

_Label = Annotated[str, Field(max_length=200), Printable]


def _named(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _task_name(value: str) -> str:
    if not re.fullmatch(r"[\w-]*", value):
        raise ValueError(f"is {toml_value(value)}; a name is letters, digits, - and _")
    if value == "responses":
        raise ValueError('is "responses", which is the task of that objective; take another')
    return value


class GroupFile(Settings):
    """A file of groups of sentences that mean the same."""

    path: FilledText = Field(description="Below the folder that `--data` names.")
    share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of its rows that are used, drawn at random: less than all of them shows "
        "what they bring.",
    )


class InferenceFile(GroupFile):
    """A file of pairs of sentences with a class, as SNLI's."""

    premise: FilledText = Field(
        default="sentence1",
        description="Field of the premise; a list of premises is read as one text.",
    )
    hypothesis: FilledText = Field(default="sentence2", description="Field of the hypothesis.")
    label: FilledText = Field(default="gold_label", description="Field of the class.")
    labels: Mapping[_Label, Literal["entailment", "neutral", "contradiction", ""]] = Field(
        default_factory=dict,
        description='The file\'s labels as entailment, neutral or contradiction; "" leaves their '
        "rows out.",
    )


TaskData = GroupFile | InferenceFile
_GroupFiles = Annotated[
    tuple[Annotated[GroupFile, BeforeValidator(_named)], ...],
    Field(min_length=1, max_length=1_000),
    AsTuple,
]
_InferenceFiles = Annotated[
    tuple[Annotated[InferenceFile, BeforeValidator(_named)], ...],
    Field(min_length=1, max_length=1_000),
    AsTuple,
]


class Task(Settings):
    """What every task of a run has."""

    objective: str
    share: float = Field(
        gt=0, le=1, description="Share of the steps; those of a run's tasks add up to 1."
    )
    batch_size: int | None = Field(
        default=None, ge=2, le=1_048_576, description="Rows of a batch; absent: the phase's."
    )
    word_dropout: Probability | None = Field(
        default=None,
        description="Share of ids left out of a sentence, at random; absent: the objective's.",
    )

    @property
    def label(self) -> str:
        """What the task is called."""
        return self.objective


class ResponsesTask(Task):
    """Response selection on the pairs that `--pairs` names."""

    objective: Literal["responses"]

    @property
    def data(self) -> tuple[TaskData, ...]:
        """No labelled files."""
        return ()

    @property
    def power(self) -> float:
        """Of one stream, which has the whole share."""
        return 1.0


class LabelledTask(Task):
    """What every task on labelled files has."""

    name: Annotated[str, Field(max_length=100), AfterValidator(_task_name)] = Field(
        default="",
        description="Tells apart tasks of one objective, each with its own scale; letters, digits, "
        "- and _. Empty: the objective's.",
    )
    power: float = Field(
        default=1.0,
        ge=0,
        le=4,
        description="A file of n rows gets a part of the share that goes with n to this power.",
    )

    @property
    def label(self) -> str:
        """What the task is called."""
        return self.name or self.objective


class EntailmentTask(LabelledTask):
    """A classifier of pairs: entailment, neutral or contradiction."""

    objective: Literal["entailment"]
    data: _InferenceFiles = Field(description="A list of files; a path alone stands for its table.")


class EntailmentRankingTask(LabelledTask):
    """An entailed hypothesis finds its premise."""

    objective: Literal["entailment-ranking"]
    data: _InferenceFiles = Field(description="A list of files; a path alone stands for its table.")
    hard_negatives: bool = Field(
        default=True, description="Contradictions of a premise are candidates too."
    )
    symmetric: bool = Field(
        default=True, description="Also pick the right premise for each entailed hypothesis."
    )


class ParaphraseTask(LabelledTask):
    """A sentence finds another of its group."""

    objective: Literal["paraphrase"]
    data: _GroupFiles = Field(description="A list of files; a path alone stands for its table.")


if TYPE_CHECKING:
    TaskConfig = ResponsesTask | EntailmentTask | EntailmentRankingTask | ParaphraseTask
else:
    TaskConfig: Any = tagged(
        (ResponsesTask, EntailmentTask, EntailmentRankingTask, ParaphraseTask), "objective"
    )
