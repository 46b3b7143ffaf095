"""Writes `metrics.jsonl` and TensorBoard events."""

import json
import math
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rejoinder.errors import TrainingError, require
from rejoinder.files.atomic import write_text
from rejoinder.files.storage import storage_errors
from rejoinder.training.reporting import Reporter


class RunLog:
    """A reporter that writes `metrics.jsonl` and TensorBoard events, and calls another reporter."""

    def __init__(self, run: Path, step: int, listener: Reporter) -> None:
        """Opens the log of a run that continues after `step`; what was logged beyond is dropped.

        Raises:
            MissingExtraError: TensorBoard is not installed.
            TrainingError: `metrics.jsonl` is no file, or `events` is no folder.
        """
        require("train", "tensorboard")
        self.listener = listener
        self.path = run / "metrics.jsonl"
        _cut(self.path, step)
        events = run / "events"
        if events.exists() and not events.is_dir():
            raise TrainingError(f"{events} is no folder; remove it to resume the run.")
        self.events = _EventFile(events, step + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.events.close()

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

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        line = json.dumps({"step": step, "group": group, **values})
        with storage_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self.events.add(
            {f"{group}/{name.replace(' ', '_')}": v for name, v in values.items()}, step
        )


class _EventFile:
    """A TensorBoard file, written synchronously.

    TensorBoard's own writer is a thread, whose errors (a full disk) nobody would see.
    """

    def __init__(self, folder: Path, purge_step: int) -> None:
        """Opens a new file that tells TensorBoard to drop older values from `purge_step` on."""
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.path = folder / name
        with storage_errors(self.path):
            folder.mkdir(exist_ok=True)
            self._writer: Any = RecordWriter(self.path.open("ab"))
        self._write(file_version="brain.Event:2")
        self._write(step=purge_step, session_log=SessionLog(status=SessionLog.START))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Writes values of one step, by tag."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._write(step=step, summary=Summary(value=scalars))

    def close(self) -> None:
        """Closes the file."""
        with storage_errors(self.path):
            self._writer.close()

    def _write(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with storage_errors(self.path):
            self._writer.write(Event(wall_time=time.time(), **fields).SerializeToString())
            self._writer.flush()


def _cut(path: Path, step: int) -> None:
    """Keeps the lines up to `step`: a run stopped between checkpoints writes the rest again.

    A line that is cut, as by a kill, is dropped too: nothing is computed from this file.

    Raises:
        TrainingError: there is something at `path` that is no file.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise TrainingError(f"{path} is no file; remove it to resume the run.")
    lines = path.read_text("utf-8", "replace").splitlines()
    write_text(path, "".join(f"{line}\n" for line in lines if _step_of(line) <= step))


def _step_of(line: str) -> float:
    """Returns the step of a line of `metrics.jsonl`, infinity if the line has none."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return math.inf
