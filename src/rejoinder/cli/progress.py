"""Progress for people: bars on a terminal, a line now and then elsewhere; always on stderr."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rejoinder.cli.output import stderr

_LINE_SECONDS = 10.0


class _TimeRemaining(TimeRemainingColumn):
    """The time that a task still takes; nothing where nobody knows."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None and not task.finished else Text("")


def _amount(done: int, total: int | None, unit: str) -> str:
    """How much is done, of how much if that is known.

    >>> _amount(12_345, None, "pairs"), _amount(5, 20, "steps"), _amount(0, None, "")
    ('12,345 pairs', '5/20 steps', '')
    >>> _amount(45_100_000, 97_300_000, "bytes")
    '45.1 MB/97.3 MB'
    """
    if total is None and not done:
        return ""
    write = decimal if unit == "bytes" else "{:,}".format
    amounts = write(done) if total is None else f"{write(done)}/{write(total)}"
    return amounts if unit == "bytes" else f"{amounts} {unit}".rstrip()


class _Bar:
    """A bar that is drawn on a terminal only."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.console = stderr()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            _TimeRemaining(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.total, self.unit = total, unit
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

    def show(
        self,
        name: str,
        done: int,
        facts: str = "",
        *,
        total: int | None = None,
        unit: str | None = None,
    ) -> None:
        """Move the bar `name`; off a terminal, say so every ten seconds.

        Args:
            name: what is being done; a new name ends the bar before.
            done: how much of it.
            facts: what else there is to say.
            total: how much in all, if that is known.
            unit: of `done` and `total`, where it is not that of the other bars.
        """
        total = total or self.total
        amount = _amount(done, total, self.unit if unit is None else unit)
        if self.task is None or self.progress.tasks[self.task].description != name:
            self._end()
            self.task = self.progress.add_task(name, total=total, facts="", amount="")
        self.progress.update(self.task, completed=done, facts=facts, amount=amount, total=total)
        if not self.console.is_terminal and time.monotonic() - self.spoken > _LINE_SECONDS:
            self.spoken = time.monotonic()
            said = "  ".join(filter(None, (name, amount, facts)))
            self.console.print(said, markup=False)

    def _end(self) -> None:
        """Full, and its clock stopped, is the bar of what is done."""
        if self.task is not None:
            done = self.progress.tasks[self.task].completed or 1
            self.progress.update(self.task, completed=done, total=done)


class StageProgress(_Bar):
    """Stages one after the other, each with its rate: bytes read, pairs written."""

    def __init__(self, unit: str) -> None:
        super().__init__(None, unit)
        self.stage, self.begun, self.first = "", time.monotonic(), 0

    def stage_update(
        self, stage: str, done: int, total: int | None = None, unit: str | None = None
    ) -> None:
        """`done` of `stage`, and of how many if that is known."""
        if stage != self.stage:
            self.stage, self.begun, self.first = stage, time.monotonic(), done
        unit = self.unit if unit is None else unit
        # what came with the first update took a time that nobody measured
        rate = (done - self.first) / max(time.monotonic() - self.begun, 1e-3)
        shown = decimal(int(rate)) if unit == "bytes" else f"{rate:,.0f}"
        self.show(stage, done, f"{shown}/s" if done > self.first else "", total=total, unit=unit)

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
