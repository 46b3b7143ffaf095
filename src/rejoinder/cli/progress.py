"""Progress on standard error: bars on a terminal, elsewhere a line every ten seconds."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

from rich import progress
from rich.filesize import decimal
from rich.text import Text

from rejoinder.cli.output import stderr

_LINE_SECONDS = 10.0


class _TimeRemaining(progress.TimeRemainingColumn):
    """The remaining time of a stage; nothing if its total is unknown or it is done."""

    def render(self, task: progress.Task) -> Text:
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


class Bar:
    """Progress of stages one after the other: a bar for each on a terminal, elsewhere lines."""

    def __init__(self, unit: str, total: int | None = None) -> None:
        """Prepares for amounts of a `unit`, a plural noun, and `total` of them if it is known."""
        self.console = stderr()
        self.progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=24),
            progress.TextColumn("{task.fields[amount]}"),
            progress.TextColumn("{task.fields[facts]}"),
            progress.TimeElapsedColumn(),
            _TimeRemaining(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.unit, self.total = unit, total
        self.stage, self.first = "", 0
        self.begun = self.last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.progress.stop()

    def show(
        self,
        stage: str,
        done: int,
        total: int | None = None,
        unit: str | None = None,
        facts: str | None = None,
    ) -> None:
        """Shows the amount done of a stage, of `total` if that is known, with `facts`.

        By default these are the rate, such as bytes per second. Without a terminal, a line is
        printed every ten seconds.
        """
        self.progress.start()
        now, total = time.monotonic(), total or self.total
        unit = self.unit if unit is None else unit
        if stage != self.stage:
            for task in self.progress.tasks[-1:]:  # a full bar, which stops its clock
                self.progress.update(
                    task.id, completed=task.completed or 1, total=task.completed or 1
                )
            self.stage, self.begun, self.first = stage, now, done
            self.progress.add_task(stage, total=total, facts="", amount="")
        if facts is None:  # the time that the first amount took is unknown
            rate = (done - self.first) / max(now - self.begun, 1e-3)
            per_second = decimal(int(rate)) if unit == "bytes" else f"{rate:,.0f}"
            facts = f"{per_second}/s" if done > self.first else ""
        amount = _amount(done, total, unit)
        task = self.progress.tasks[-1]
        self.progress.update(task.id, completed=done, total=total, facts=facts, amount=amount)
        if not self.console.is_terminal and now - self.last_line > _LINE_SECONDS:
            self.last_line = now
            self.console.print("  ".join(filter(None, (stage, amount, facts))), markup=False)


class TrainingProgress(Bar):
    """A reporter that shows the steps of a run, with pairs/s, loss and the scores on dev."""

    def __init__(self, steps: int | None) -> None:
        """Prepares the bar for runs of `steps` steps; None if that is unknown."""
        super().__init__("steps", steps)
        self.scores = ""

    def preparation(self, done: int, total: int) -> None:
        """Shows the number of pairs that the vocabulary was learned from, of all."""
        self.show("vocabulary", done, total, "pairs")

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Shows the means of a stretch of steps."""
        facts = (
            f"{metrics['pairs_per_second']:,.0f} pairs/s  loss {metrics['loss']:.3f}  "
            f"in batch {metrics['accuracy']:.3f}"
        )
        self.show("training", step, facts=f"{facts}{self.scores}")

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
    with Bar("tasks") as bar:
        yield lambda done, total, task: bar.show("evaluating", done, total, facts=task)


@contextmanager
def encoding_bar() -> Iterator[Callable[[int, int, int | None], None]]:
    """Yields a function that shows sentences done, bytes read, and bytes of the file or None.

    Its first call tells what is done before the work begins. It shows nothing before the second
    chunk is done, so that short work leaves the terminal alone.
    """
    calls = count()
    with Bar("sentences") as bar:

        def show(done: int, read: int, size: int | None) -> None:
            if next(calls) >= 2:
                # the bytes read of an export are not counted
                total = size if read else None
                bar.show("encoding", read or done, total, "bytes" if read else None)

        yield show
