"""Evaluation tasks: the context that each task gets, and families that describe tasks.

The modules define families of tasks, most of them listed in `FAMILIES`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rejoinder.datasets.semeval import GradedPairs
from rejoinder.errors import DataMissingError, InputError, nearest
from rejoinder.evaluation.classifiers.learners import ClassifierSettings
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.responses import ResponsePairs
from rejoinder.evaluation.results import Scored
from rejoinder.registry import Registry


@dataclass(frozen=True)
class Context:
    """The location of the data, and the settings of a run."""

    data: Path | None = None
    pairs: Callable[[], ResponsePairs] | None = None
    """Function that reads the pairs that `response` ranks."""
    graded: Callable[[], GradedPairs] | None = None
    """Function that returns the pairs of the task `graded`."""
    form: str | None = None
    """Form of the STS data: official or senteval. None uses what is available, official first."""
    splits: Sequence[str] = ("dev", "test")
    """Splits of the STS Benchmark, SNLI and CQA that are scored."""
    seed: int = 0
    """Seed of draws and intervals."""
    classifiers: ClassifierSettings = field(default_factory=ClassifierSettings)
    text: str = "both"
    """Part of the CQA questions that is read: subject, body or both."""
    tell: Callable[[str], None] = lambda _doing: None
    """Called from time to time with the current step of a task."""

    def __post_init__(self) -> None:
        if self.form not in (None, "official", "senteval"):
            raise InputError(f"form {self.form!r}: official or senteval.")

    def folder(self, task: str) -> Path:
        """Returns the folder of data sets that `task` needs.

        Raises:
            DataMissingError: no folder was given.
        """
        if self.data is None:
            raise DataMissingError(f"the task {task} needs data; name its folder with `data`.")
        return self.data


Part = tuple[str, str]
"""The id of a task, and a split."""
EDITIONS = ("-unrepeated", "-v2")
"""Suffixes for the names of tasks on a part of a data set."""
Data = Mapping[Part, Any]
"""What to score, by task and split. Each value has `sha256`, which is stored in the result."""


Reads = Callable[[Context, Sequence[str]], Data]
"""Reads the data of the tasks with the given ids, all from one family."""


@dataclass(frozen=True)
class Family:
    """Tasks that share their data and their code. `register_family` registers them."""

    tasks: Mapping[str, tuple[str, ...]]
    """The groups of each task, by its id. `--tasks` accepts ids and groups."""
    read: Reads
    run: Callable[[Embedder, Context, Part, Any], Scored]
    """Scores one of the values that `read` returned."""
    protocol: str | None = None
    """Protocol of the classifiers: `nested`, `kfold`, `split`, `regression` or `retrieval`. None
    means that no classifier is trained."""
    options: tuple[str, ...] = ()
    """Which of `pairs`, `form` and `text` of the context affect the tasks."""

    def heeds(self, name: str, context: Context) -> bool:
        """Returns whether a setting with a non-default value affects the tasks.

        `name` is a field of `ClassifierSettings`, or `pairs`, `split`, `form`, `text`.
        """
        if name in ("pairs", "split", "form", "text"):
            return {"split": "pairs"}.get(name, name) in self.options
        if self.protocol is None:
            return False
        plain = replace(context.classifiers, **{name: getattr(ClassifierSettings(), name)})
        return plain.describe(self.protocol) != context.classifiers.describe(self.protocol)

    def settings(self, context: Context) -> dict[str, Any]:
        """Returns the settings that affect the results, as plain values."""
        settings: dict[str, Any] = {"seed": context.seed}
        if "text" in self.options:
            settings["text"] = context.text
        if self.protocol is not None:
            settings["classifiers"] = context.classifiers.describe(self.protocol)
        return settings


def reads(read: Callable[[Path], Any], split: str = "test") -> Reads:
    """Returns `Family.read` for tasks that share what `read` returns for the data folder."""

    def read_all(context: Context, ids: Sequence[str]) -> Data:
        return dict.fromkeys(((task, split) for task in ids), read(context.folder(ids[0])))

    return read_all


def reads_splits(read: Callable[..., Any], splits: Sequence[str] | None = None) -> Reads:
    """Returns `Family.read` for a task: calls `read` with the data folder for each wanted split.

    `splits` are the splits of the data. None means that it may have any.
    """

    def read_all(context: Context, ids: Sequence[str]) -> Data:
        folder, wanted = context.folder(ids[0]), context.splits
        chosen = wanted if splits is None else [split for split in splits if split in wanted]
        return {(ids[0], split): read(folder, split=split) for split in chosen}

    return read_all


FAMILIES: Registry[Sequence[Family]] = Registry(
    "task",
    {
        "response": f"{__name__}.ranking:RESPONSES",
        "trained": f"{__name__}.trained:FAMILIES",
        "similarity": f"{__name__}.similarity:FAMILIES",
        "ranking": f"{__name__}.ranking:FAMILIES",
        "robust": f"{__name__}.similarity:ROBUST",
        "contrasts": f"{__name__}.contrasts:FAMILIES",
        "links": "rejoinder.links.task:FAMILIES",
    },
)
"""A new module needs a line here, or a call of `register_family`. Tasks of a group run in this
order."""


def register_family(family: Family) -> None:
    """Registers a family of tasks, so that `evaluate` finds them by id and by group.

    Raises:
        InputError: a task's id is already the id of another task or of a group, or one of its
            groups has the id of a task.
    """
    known, groups = _by_task(), task_groups()
    for task, own in family.tasks.items():
        taken = [name for name in (task, *own) if name in known]
        taken += [task] if task in groups else []
        if taken:
            raise InputError(f"the name {taken[0]!r} of a task or group is registered already.")
    FAMILIES.register(next(iter(family.tasks)), (family,))


def _by_task() -> dict[str, Family]:
    families = chain(*FAMILIES.values())
    return {task: family for family in families for task in family.tasks}


def task_groups() -> Mapping[str, list[str]]:
    """Returns the ids of the tasks of each group."""
    groups: dict[str, list[str]] = {}
    for task, family in _by_task().items():
        for group in family.tasks[task]:
            groups.setdefault(group, []).append(task)
    return groups


def resolve(names: Sequence[str]) -> list[str]:
    """Returns the ids of the given tasks and groups, each once, in the order requested.

    >>> resolve(["stsb", "stsb/cosine"])
    ['stsb/angular', 'stsb/cosine']

    Raises:
        InputError: a name is unknown.
    """
    groups, known = task_groups(), _by_task()
    for name in names:
        if name not in groups and name not in known:
            raise InputError(f"`tasks` {name!r}: {nearest(name, [*groups, *known])}.")
    return list(dict.fromkeys(task for name in names for task in groups.get(name, [name])))


def set_of(task: str) -> str:
    """Returns the name of the data set of a task.

    >>> set_of("stsb-unrepeated/cosine")
    'stsb'
    """
    name = task.partition("/")[0]
    for ending in EDITIONS:
        name = name.removesuffix(ending)
    return name


def families_of(ids: Sequence[str]) -> list[tuple[Family, list[str]]]:
    """Returns the families of tasks in the order requested, each with its requested tasks."""
    known = _by_task()
    chosen: dict[int, tuple[Family, list[str]]] = {}
    for task in ids:
        chosen.setdefault(id(known[task]), (known[task], []))[1].append(task)
    return list(chosen.values())
