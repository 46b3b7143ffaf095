"""The tables of tasks in a config, and of their files."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from rejoinder.io.schema import (
    AsTuple,
    FilledText,
    Printable,
    Probability,
    Settings,
    shown,
)

_Label = Annotated[str, Field(max_length=200), Printable]


def _task_name(value: str) -> str:
    if not re.fullmatch(r"[\w-]*", value):
        raise ValueError(f"is {shown(value)}; a name is letters, digits, - and _")
    if value == "responses":
        raise ValueError('is "responses", which is the task of that objective; choose another name')
    return value


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value)


class DataFile(Settings):
    """A file of a task."""

    path: FilledText
    """Path below the folder given by `--data`."""
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

    share: float = Field(default=1.0, gt=0, le=1)
    """Fraction of rows used, sampled at random: the points of figure 8 of Yang et al. 2018."""
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


_AsTable = BeforeValidator(lambda value: {"path": value} if isinstance(value, str) else value)
_FILES = "Files to train on: a list of paths, or of tables with a path."


_File = TypeVar("_File", bound=DataFile)
_Files = Annotated[
    tuple[Annotated[_File, _AsTable], ...],
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
