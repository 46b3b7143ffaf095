"""What every task is given, and what a family of tasks is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.classifiers.settings import ClassifierSettings
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.results import Result

if TYPE_CHECKING:
    from rejoinder.evaluation.tasks.response import ResponsePairs


@dataclass(frozen=True)
class Context:
    """Where the data is, and the settings of a run."""

    data: Path | None = None
    """A folder of data sets."""
    pairs: "Callable[[], ResponsePairs] | None" = None
    """Reads the pairs that `response` ranks."""
    form: str | None = None
    """Form of the STS data: official or senteval; none: what is there, official first."""
    splits: Sequence[str] = ("dev", "test")
    """Of the STS Benchmark and of CQA."""
    seed: int = 0
    """Of draws and intervals."""
    classifiers: ClassifierSettings = field(default_factory=ClassifierSettings)
    text: str = "both"
    """Of the questions of CQA: subject, body or both."""
    tell: Callable[[str], None] = lambda _doing: None
    """Called now and then with what a task is doing."""

    def __post_init__(self) -> None:
        if self.form not in (None, "official", "senteval"):
            raise InputError(f"form {self.form!r}: official or senteval.")

    def folder(self, task: str) -> Path:
        """The folder of data sets.

        Raises:
            DataMissingError: none was given.
        """
        if self.data is None:
            raise DataMissingError(f"the task {task} needs data; name its folder with --data.")
        return self.data


Hashes = Mapping[tuple[str, str], str]
"""SHA-256 of the data by task and split."""


@dataclass(frozen=True)
class Family:
    """Tasks that share their data and their work."""

    tasks: Mapping[str, tuple[str, ...]]
    """The groups that each task belongs to, by its id. Any group or id can be asked for."""
    run: Callable[[Embedder, Context, Sequence[str]], list[Result]]
    """Results of those of the ids that are asked for."""
    hashes: Callable[[Context, Sequence[str]], Hashes]
    """What those results would be scored on: their `data["sha256"]`, without scoring."""
    protocol: str | None = None
    """Of the classifiers: `nested`, `kfold`, `split`, `regression` or `retrieval`; none: no
    classifiers."""
    reads_text: bool = False
    """Whether the setting `text` acts on it."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the tasks."""
        return tuple(self.tasks)

    def settings(self, context: Context) -> dict[str, Any]:
        """The settings that act on its results, as plain values."""
        found: dict[str, Any] = {"seed": context.seed}
        if self.reads_text:
            found["text"] = context.text
        if self.protocol is not None:
            found["classifiers"] = context.classifiers.describe(self.protocol)
        return found
