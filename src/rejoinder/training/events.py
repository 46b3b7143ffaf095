"""Writes `metrics.jsonl` and TensorBoard events."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rejoinder.errors import MissingExtraError, TrainingError
from rejoinder.files.atomic import write_text
from rejoinder.files.storage import storage_errors
from rejoinder.training.loop import Reporter


class RunLog:
    """A reporter that writes down what it is told, and tells it on."""

    def __init__(self, run: Path, step: int, listener: Reporter) -> None:
        """A log of the run that goes on after `step`; what it had said beyond is forgotten.

        Raises:
            MissingExtraError: TensorBoard is not installed.
            TrainingError: something else stands in place of a file or of the folder of events.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboard", "train") from None
        self.listener = listener
        self.path = run / "metrics.jsonl"
        _cut(self.path, step)
        events = run / "events"
        if events.exists() and not events.is_dir():
            raise TrainingError(f"{events} is no folder; remove it to go on with the run.")
        self.writer: Any = SummaryWriter(str(events), purge_step=step + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.close()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """After each logged stretch of steps."""
        self._write("train", step, metrics)
        self.listener.step(step, metrics)

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """After each evaluation."""
        self._write("dev", step, scores)
        self.listener.evaluation(step, scores)

    def saved(self, step: int, place: Path) -> None:
        """After each checkpoint."""
        self.listener.saved(step, place)

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        line = json.dumps({"step": step, "group": group, **values})
        with storage_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        for name, value in values.items():
            self.writer.add_scalar(f"{group}/{name.replace(' ', '_')}", value, step)


def _cut(path: Path, step: int) -> None:
    """Keep the lines up to `step`: a run stopped between checkpoints writes the rest again.

    A line that is cut, as by a kill, goes too: nothing is computed from this file.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise TrainingError(f"{path} is no plain file; remove it to go on with the run.")
    lines = path.read_text("utf-8", "replace").splitlines()
    write_text(path, "".join(f"{line}\n" for line in lines if _step_of(line) <= step))


def _step_of(line: str) -> float:
    """The step of a line of `metrics.jsonl`; infinite where there is none to be read."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return math.inf
