"""Progress for people: bars on a terminal, a line now and then elsewhere; always on stderr."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rejoinder.cli.output import stderr

_LINE_SECONDS = 10.0


class _Bar:
    """A bar that is drawn on a terminal only."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.console = stderr()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn(unit),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.total = total
        self.task: TaskID | None = None
        self.spoken = time.monotonic()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def show(self, name: str, done: int, facts: str = "", *, total: int | None = None) -> None:
        """Move the bar `name`; off a terminal, say so every ten seconds."""
        if self.task is None or self.progress.tasks[self.task].description != name:
            self.task = self.progress.add_task(name, total=total or self.total, facts="")
        self.progress.update(self.task, completed=done, facts=facts, total=total or self.total)
        if not self.console.is_terminal and time.monotonic() - self.spoken > _LINE_SECONDS:
            self.spoken = time.monotonic()
            self.console.print(f"{name} {done:,} {facts}", markup=False)


class StageProgress(_Bar):
    """Stages that each count up: comments read, pairs written."""

    def __init__(self, unit: str) -> None:
        super().__init__(None, unit)
        self.stage, self.begun = "", time.monotonic()

    def stage_update(self, stage: str, done: int) -> None:
        """`done` of `stage`, of which nobody knows how many there will be."""
        if stage != self.stage:
            self.stage, self.begun = stage, time.monotonic()
        self.show(stage, done, f"{done / max(time.monotonic() - self.begun, 1e-3):,.0f}/s")

    def part_update(self, done: int, total: int) -> None:
        """`done` of `total`, of the vocabulary."""
        self.show("vocabulary", done, total=total)


class TrainingProgress(_Bar):
    """Steps of a run, with pairs/s, loss and the scores on dev."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps, "steps")
        self.scores = ""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """After each logged stretch of steps."""
        facts = (
            f"{metrics['pairs_per_second']:,.0f} pairs/s  loss {metrics['loss']:.3f}  "
            f"in batch {metrics['accuracy']:.3f}"
        )
        self.show("training", step, f"{facts}{self.scores}")

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """After each evaluation."""
        said = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
        name, value = next(iter(scores.items()))
        self.scores = f"  dev {name} {value:.3f}"
        self.console.print(f"step {step:,} on dev: {said}", markup=False)

    def saved(self, step: int, place: Path) -> None:
        """After each checkpoint: said where it is kept at the end, not each time."""


@contextmanager
def task_bar() -> Iterator[Callable[[int, int, str], None]]:
    """A bar over the tasks of an evaluation: a function of tasks done, all of them, the next."""
    with _Bar(None, "tasks") as bar:
        yield lambda done, total, following: bar.show("evaluating", done, following, total=total)


@contextmanager
def download_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each address: a function of the address, the bytes there, all of them."""
    with _Bar(None, "bytes") as bar:
        yield lambda name, done, total: bar.show(name, done, total=total)
