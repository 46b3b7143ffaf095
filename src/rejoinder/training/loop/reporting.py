"""Reports the progress of training: the protocol of reporters, and means over steps."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor


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

    def __init__(self, every: int, tasks: Sequence[str], stretch: Tensor | None = None) -> None:
        """Prepares means for tasks with these labels, in the middle of a `stretch` if given."""
        self.every, self.tasks = every, tasks
        self._facts: list[Tensor] = [] if stretch is None else list(stretch)
        """Those of the stretch so far: sums at each step would take as long as a layer."""
        self._earlier = len(self._facts)
        """Number of these that an earlier session has seen."""
        self._begun = time.perf_counter()

    def add(self, step: int, facts: Tensor) -> dict[str, float] | None:
        """Adds a step, counted from 1; returns the means of the stretch if this step ends it.

        Losses by task are among them if there are several. The numbers stay on their device until
        then, so that no step waits for it.

        Args:
            step: the number of the step.
            facts: (T, 3) by task the loss times the rows, the rows ranked or classified correctly,
                and the rows.
        """
        self._facts.append(facts)
        if step % self.every:
            return None
        loss, correct, rows = torch.stack(self._facts).double().unbind(2)
        self._facts.clear()
        rows_of_session, self._earlier = float(rows[self._earlier :].sum()), 0
        took_part = rows > 0
        means = torch.where(took_part, loss / rows, 0.0)
        totals = torch.stack([means, correct, rows, took_part.double()]).sum(dim=1)
        losses, correct_rows, all_rows, steps = totals.tolist()
        seconds = time.perf_counter() - self._begun
        metrics = {
            "loss": sum(losses) / sum(steps),
            "accuracy": sum(correct_rows) / sum(all_rows),
            "pairs_per_second": rows_of_session / seconds,
        }
        parts = zip(self.tasks, losses, steps, strict=True)
        by_task = {f"loss {name}": loss / count for name, loss, count in parts if count}
        if len(by_task) > 1:
            metrics |= by_task
        self._begun = time.perf_counter()
        return metrics

    def stretch(self) -> Tensor | None:
        """Returns the facts of the stretch so far, (S, T, 3), None if it has not begun."""
        return torch.stack(self._facts).cpu() if self._facts else None
