"""The context that every task gets, and the record that describes a family of tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """The location of the data, and the settings of a run."""

    data: Path | None = None
    pairs: "Callable[[], ResponsePairs] | None" = None
    """Function that reads the pairs that `response` ranks."""
    form: str | None = None
    """Form of the STS data: official or senteval. None takes what is there, official first."""
    splits: Sequence[str] = ("dev", "test")
    """Splits of the STS Benchmark, SNLI and CQA that are scored."""
    seed: int = 0
    """Seed of draws and intervals."""
    classifiers: ClassifierSettings = field(default_factory=ClassifierSettings)
    text: str = "both"
    """Part of the questions of CQA that is read: subject, body or both."""
    tell: Callable[[str], None] = lambda _doing: None
    """Called from time to time with what a task is doing."""

    def __post_init__(self) -> None:
        if self.form not in (None, "official", "senteval"):
            raise InputError(f"form {self.form!r}: official or senteval.")

    def folder(self, task: str) -> Path:
        """Returns the folder of data sets, which `task` needs.

        Raises:
            DataMissingError: no folder was given.
        """
        if self.data is None:
            raise DataMissingError(f"the task {task} needs data; name its folder with --data.")
        return self.data


Hashes = Mapping[tuple[str, str], str]
"""SHA-256 of the data by task and split."""


@dataclass(frozen=True)
class Family:
    """Tasks that share their data and their work. `register_family` makes them known."""

    tasks: Mapping[str, tuple[str, ...]]
    """The groups of each task, by its id. `--tasks` takes ids and groups."""
    run: Callable[[Embedder, Context, Sequence[str]], list[Result]]
    """Scores the tasks with the given ids, all of them of this family."""
    hashes: Callable[[Context, Sequence[str]], Hashes]
    """Returns the `data["sha256"]` that the results would have, without scoring."""
    protocol: str | None = None
    """Protocol of the classifiers: `nested`, `kfold`, `split`, `regression` or `retrieval`. None
    means that no classifier is trained."""
    reads: tuple[str, ...] = ()
    """Which of `pairs`, `form` and `text` of the context act on the tasks."""

    def heeds(self, name: str, context: Context) -> bool:
        """Returns whether a setting that is not the default one acts on the tasks.

        `name` is that of an argument of `evaluate`.
        """
        if name in ("pairs", "split"):
            return "pairs" in self.reads
        if name in ("form", "text"):
            return name in self.reads
        key = {"pytorch": "usepytorch"}.get(name, name)
        if self.protocol is None:
            return False
        plain = replace(context.classifiers, **{key: getattr(ClassifierSettings(), key)})
        return plain.describe(self.protocol) != context.classifiers.describe(self.protocol)

    def settings(self, context: Context) -> dict[str, Any]:
        """Returns the settings that act on the results, as plain values."""
        settings: dict[str, Any] = {"seed": context.seed}
        if "text" in self.reads:
            settings["text"] = context.text
        if self.protocol is not None:
            settings["classifiers"] = context.classifiers.describe(self.protocol)
        return settings
