"""Reports the progress of training: the protocol of reporters, means over steps, and logs."""

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.storage import storage_errors
from rejoinder.training.loop.checkpoint import TrainingState


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


class RunLog:
    """A reporter that writes `metrics.jsonl` and TensorBoard events, and calls another reporter.

    Events are written synchronously: TensorBoard's own writer is a thread, which would report a
    full disk too late or not at all.
    """

    def __init__(self, run: Path, state: TrainingState, listener: Reporter) -> None:
        """Opens the log of a run that continues from `state`; what was logged beyond is dropped.

        Raises:
            TrainingError: `metrics.jsonl` is not a file, or `events` not a folder.
        """
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.listener = listener
        self.path = run / "metrics.jsonl"
        step = state.step
        _cut(self.path, state)
        folder = run / "events"
        if folder.exists() and not folder.is_dir():
            raise TrainingError(f"{folder} is not a folder; remove it to resume the run.")
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.events_path = folder / name
        with storage_errors(self.events_path):
            folder.mkdir(exist_ok=True)
            self._events: Any = RecordWriter(self.events_path.open("ab"))
        self._add_event(file_version="brain.Event:2")
        # TensorBoard drops the values from that step on which earlier files of the run hold
        self._add_event(step=step + 1, session_log=SessionLog(status=SessionLog.START))

    def close(self) -> None:
        """Closes the file of events."""
        with storage_errors(self.events_path):
            self._events.close()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Logs the means of a stretch of steps."""
        self._write("train", step, metrics)
        self.listener.step(step, metrics)

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """Logs the scores of an evaluation."""
        self._write("dev", step, scores)
        self.listener.evaluation(step, scores)

    def saved(self, step: int, path: Path) -> None:
        """Tells the listener about a checkpoint."""
        self.listener.saved(step, path)

    def workers_changed(self, step: int, before: int, now: int) -> None:
        """Notes that a run goes on after `step` with another number of workers."""
        self._write("workers", step, {"before": before, "now": now})

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        line = json.dumps({"step": step, "group": group, **values})
        with storage_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        scalars = [
            Summary.Value(tag=f"{group}/{name.replace(' ', '_')}", simple_value=value)
            for name, value in values.items()
        ]
        self._add_event(step=step, summary=Summary(value=scalars))

    def _add_event(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with storage_errors(self.events_path):
            self._events.write(Event(wall_time=time.time(), **fields).SerializeToString())
            self._events.flush()


def _cut(path: Path, state: TrainingState) -> None:
    """Keeps the lines up to `state`: a run stopped between checkpoints writes the rest again.

    A line that is cut, as by a kill, is dropped too: nothing is computed from this file.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise TrainingError(f"{path} is not a file; remove it to resume the run.")
    lines = path.read_text("utf-8", "replace").splitlines()
    write_text(path, "".join(f"{line}\n" for line in lines if _is_kept(line, state)))


def _is_kept(line: str, state: TrainingState) -> bool:
    """Returns whether a line of `metrics.jsonl` was logged before a state was saved."""
    try:
        values = json.loads(line)
        step, group = float(values["step"]), values.get("group")
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError, AttributeError):
        return False
    return step < state.step or (
        step == state.step and (group != "dev" or state.evaluated == state.step)
    )
