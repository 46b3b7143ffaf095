"""Progress on standard error: bars on a terminal, elsewhere a line every ten seconds."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
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
    """The remaining time of a stage; nothing if its total is unknown or it is done."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None and not task.finished else Text("")


def _amount(done: int, total: int | None, unit: str) -> str:
    """Returns the amount done, and the total if it is known, as text.

    >>> _amount(12_345, None, "pairs"), _amount(5, 20, "steps"), _amount(0, None, "")
    ('12,345 pairs', '5/20 steps', '')
    >>> _amount(45_100_000, 97_300_000, "bytes")
    '45.1 MB/97.3 MB'
    """
    if total is None and not done:
        return ""
    to_text = decimal if unit == "bytes" else "{:,}".format
    amounts = to_text(done) if total is None else f"{to_text(done)}/{to_text(total)}"
    return amounts if unit == "bytes" else f"{amounts} {unit}".rstrip()


class _Bar:
    """A bar per stage on a terminal; elsewhere lines."""

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
        self.last_line = time.monotonic()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
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
        """Moves the bar of the stage `name`; without a terminal, prints a line every ten seconds.

        `facts` are further text, such as a rate. `total` and `unit` default to those of all stages.
        """
        total = total or self.total
        amount = _amount(done, total, self.unit if unit is None else unit)
        if self.task is None or self.progress.tasks[self.task].description != name:
            self._end()
            self.task = self.progress.add_task(name, total=total, facts="", amount="")
        self.progress.update(self.task, completed=done, facts=facts, amount=amount, total=total)
        if not self.console.is_terminal and time.monotonic() - self.last_line > _LINE_SECONDS:
            self.last_line = time.monotonic()
            self.console.print("  ".join(filter(None, (name, amount, facts))), markup=False)

    def _end(self) -> None:
        """Fills the bar of the present stage, which stops its clock."""
        if self.task is not None:
            done = self.progress.tasks[self.task].completed or 1
            self.progress.update(self.task, completed=done, total=done)


class StageProgress(_Bar):
    """Progress of stages one after the other, each with its rate, such as bytes per second."""

    def __init__(self, unit: str) -> None:
        super().__init__(None, unit)
        self.stage, self.begun, self.first = "", time.monotonic(), 0

    def stage_update(
        self, stage: str, done: int, total: int | None = None, unit: str | None = None
    ) -> None:
        """Shows the amount done of a stage, and of the total if it is known."""
        if stage != self.stage:
            self.stage, self.begun, self.first = stage, time.monotonic(), done
        unit = self.unit if unit is None else unit
        # the time that the first amount took is unknown
        rate = (done - self.first) / max(time.monotonic() - self.begun, 1e-3)
        rate_text = decimal(int(rate)) if unit == "bytes" else f"{rate:,.0f}"
        self.show(
            stage, done, f"{rate_text}/s" if done > self.first else "", total=total, unit=unit
        )


class TrainingProgress(_Bar):
    """A reporter that shows the steps of a run, with pairs/s, loss and the scores on dev."""

    def __init__(self, steps: int | None) -> None:
        """Prepares the bar for runs of `steps` steps; None if that is unknown."""
        super().__init__(steps, "steps")
        self.scores = ""

    def preparation(self, done: int, total: int) -> None:
        """Shows the number of pairs that the vocabulary was learned from, of all."""
        self.show("vocabulary", done, total=total, unit="pairs")

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Shows the means of a stretch of steps."""
        facts = (
            f"{metrics['pairs_per_second']:,.0f} pairs/s  loss {metrics['loss']:.3f}  "
            f"in batch {metrics['accuracy']:.3f}"
        )
        self.show("training", step, f"{facts}{self.scores}")

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Prints the scores of an evaluation."""
        line = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
        name, value = next(iter(scores.items()))
        self.scores = f"  dev {name} {value:.3f}"
        self.console.print(f"step {step:,} on dev: {line}", markup=False)

    def saved(self, step: int, path: Path) -> None:
        """Shows nothing: the end of a run says where its folder is."""


@contextmanager
def task_bar() -> Iterator[Callable[[int, int, str], None]]:
    """Yields a function that shows the tasks of an evaluation: tasks done, all, next task."""
    with _Bar(None, "tasks") as bar:
        yield lambda done, total, task: bar.show("evaluating", done, task, total=total)


@contextmanager
def download_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """Yields a function that shows downloads: address, bytes received, all bytes or None."""
    with _Bar(None, "bytes") as bar:
        yield lambda name, done, total: bar.show(name, done, total=total)


@contextmanager
def encoding_bar() -> Iterator[Callable[[int, int, int | None], None]]:
    """Yields a function that shows sentences done, bytes read, and bytes of the file or None.

    Its first call tells what is done before the work begins. It shows nothing before the second
    chunk is done, so that short work leaves the terminal alone.
    """
    with ExitStack() as stack:
        times: list[tuple[float, int]] = []
        bars: list[_Bar] = []

        def show(done: int, read: int, size: int | None) -> None:
            times.append((time.monotonic(), done))
            if len(times) < 3:
                return
            if not bars:
                bars.append(stack.enter_context(_Bar(None, "sentences")))
            (begun, first), (now, _) = times[0], times[-1]
            del times[2:]
            rate = f"{(done - first) / max(now - begun, 1e-3):,.0f}/s"
            if size:
                facts = f"{done:,} sentences  {rate}"
                bars[0].show("encoding", read, facts, total=size, unit="bytes")
            else:
                bars[0].show("encoding", done, rate)

        yield show
