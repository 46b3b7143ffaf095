"""Reports the progress of training: the protocol of reporters, and means over steps."""

import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Protocol


class Reporter(Protocol):
    """The extension point for progress: an object whose methods are called during training."""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Called every `log_every` steps with the means of loss, accuracy, speed and scales."""
        ...

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Called after each evaluation."""
        ...

    def saved(self, step: int, path: Path) -> None:
        """Called after each checkpoint with its folder."""
        ...


class SilentReporter:
    """A reporter that does nothing."""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Does nothing."""

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Does nothing."""

    def saved(self, step: int, path: Path) -> None:
        """Does nothing."""


class Meter:
    """Means over a stretch of `every` steps."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._clear()

    def add(
        self, step: int, task: str, loss: float, correct: int, rows: int
    ) -> dict[str, float] | None:
        """Adds a step, counted from 1, of the task with that label.

        `correct` of the `rows` of its batch were ranked or classified correctly. Returns the means
        of the stretch, with the losses by task if there are several, if this step ends it.
        """
        self.losses.setdefault(task, []).append(loss)
        self.correct += correct
        self.rows += rows
        if step % self.every:
            return None
        seconds = time.perf_counter() - self.begun
        metrics = {
            "loss": fmean(chain(*self.losses.values())),
            "accuracy": self.correct / self.rows,
            "pairs_per_second": self.rows / seconds,
        }
        if len(self.losses) > 1:
            metrics |= {f"loss {name}": fmean(losses) for name, losses in self.losses.items()}
        self._clear()
        return metrics

    def _clear(self) -> None:
        self.losses: dict[str, list[float]] = {}
        self.correct, self.rows = 0, 0
        self.begun = time.perf_counter()
