"""The loop: batches in, a trained model out; what happens around the steps is handed in."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from queue import Queue
from statistics import fmean
from threading import Event, Thread
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.text.features import TextFeatures
from rejoinder.training import checkpoint as checkpoints
from rejoinder.training.batches import Position
from rejoinder.training.checkpoint import Checkpoint, Progress
from rejoinder.training.mixture import Mixture
from rejoinder.training.model import CollatedBatch, LiveEncoder, TrainableModel
from rejoinder.training.optimizers import Optimizers, phase_at
from rejoinder.training.settings import RunConfig
from rejoinder.training.tasks.base import Task

Evaluate = Callable[[LiveEncoder], Mapping[str, float]]
"""Scores of a model in training; the first is the one that chooses the best."""

_AHEAD = 8
_Coming = tuple[str, Position, CollatedBatch]
"""The name of a stream, where it stands after the batch, and the batch."""


class Reporter(Protocol):
    """Who is told how a run goes."""

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """After each logged stretch of steps: loss, accuracy, scale, pairs_per_second."""
        ...

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        """After each evaluation."""
        ...

    def saved(self, step: int, place: Path) -> None:
        """After each checkpoint."""
        ...


@dataclass(frozen=True)
class Limits:
    """When to stop before the config's steps are done."""

    stop_at: int | None = None
    """Stop, with a checkpoint, after so many steps."""
    seconds: float | None = None
    """Stop, with a checkpoint, after so much time in steps."""


@dataclass
class Trainer:
    """A run in progress."""

    config: RunConfig
    run: Path
    model: TrainableModel
    features: TextFeatures
    mixture: Mixture
    reporter: Reporter
    evaluate: Evaluate

    def __post_init__(self) -> None:
        dense = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizers = Optimizers(dense, self.model.encoder.tables(), self.config.optimizer)
        self.progress = Progress(0, {}, 0.0, -1, -math.inf, 0)
        self.average: dict[str, Tensor] = {}
        self.scores: dict[str, float] = {}
        self.out_of_time = False
        self.interrupted: signal.Signals | None = None
        """The signal that asked to stop, if one did."""

    def resume(self, place: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            TrainingError: it is damaged or does not fit.
        """
        saved = checkpoints.load(place, self.config)
        try:
            self.model.load_state_dict(saved.weights)
            self.optimizers.load_state(saved.optimizer)
        except (RuntimeError, KeyError) as error:
            raise TrainingError(f"checkpoint {place} does not fit the run: {error}") from None
        self.progress, self.average = saved.progress, saved.average

    def train(self, limits: Limits) -> bool:
        """Take steps until the config's are done, a limit is reached or a signal asks to stop.

        SIGINT (Ctrl-C) and SIGTERM let the step under way finish. Ends with a checkpoint in every
        case but a loss or a gradient that is not finite.

        Returns:
            Whether the config's steps are done.

        Raises:
            TrainingError: a loss or a gradient is not finite; the weights are as before that batch.
        """
        last = min(self.config.steps, limits.stop_at or self.config.steps)
        meter = _Meter(self.config.training.log_every)
        self.model.train()
        with _signals() as signals, self._batches() as batches:
            while self.progress.step < last and not signals:
                begun = time.perf_counter()
                stream, position, batch = next(batches)
                self._step(batch, meter)
                seconds = self.progress.seconds + time.perf_counter() - begun
                self._advance({stream: position}, seconds)
                if limits.seconds is not None and seconds >= limits.seconds:
                    self.out_of_time = True
                    break
        self.interrupted = signals[0] if signals else None
        done = self.progress.step >= self.config.steps
        every = self.config.training.evaluate_every
        if (done or self.out_of_time) and not (every and self.progress.step % every == 0):
            self._evaluate()
        self._save()
        return done

    def _step(self, batch: CollatedBatch, meter: "_Meter") -> None:
        step = self.progress.step
        # what is drawn within a step (dropout) follows from the step: a resumed run draws the same
        torch.manual_seed(self.config.training.seed * 1_000_003 + step)
        self.optimizers.zero()
        result = self.model.loss(batch)
        loss = result.loss.item()
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of batch {step + 1} is {loss}; nothing was changed by it. Lower the "
                "learning rate, or train in fp32; the last checkpoint is whole."
            )
        result.loss.backward()  # type: ignore[no-untyped-call]
        if not self.optimizers.finite():
            raise TrainingError(
                f"the gradient of batch {step + 1} is not finite (its loss is {loss:.4g}); nothing "
                "was changed by it. Lower the learning rate, or train in fp32; the last checkpoint "
                "is whole."
            )
        phase, within = phase_at(self.config.phases, step)
        self.optimizers.step(phase, within)
        metrics = meter.add(step + 1, batch.task.label, loss, int(result.correct), batch.rows)
        if metrics is not None:
            self.reporter.step(step + 1, metrics | self._scales())

    def _scales(self) -> dict[str, float]:
        return {
            f"scale {name}": float(self.model.scale(name).detach())
            for name in self.model.log_scales
        }

    def _advance(self, moved: Mapping[str, Position], seconds: float) -> None:
        training, old = self.config.training, self.progress
        step = old.step + 1
        self.progress = replace(
            old, step=step, positions={**old.positions, **moved}, seconds=seconds
        )
        if training.evaluate_every and step % training.evaluate_every == 0:
            self._evaluate()
        if training.checkpoint_every and step % training.checkpoint_every == 0:
            self._save()

    def _evaluate(self) -> None:
        scores = dict(self.evaluate(LiveEncoder(self.model, self.features)))
        self.scores = scores
        if scores:
            self.reporter.evaluation(self.progress.step, scores)
        old = self.progress
        score = next(iter(scores.values()), -math.inf)
        weights = self.config.export.weights
        best_step, best_score, averaged = old.best_step, old.best_score, old.averaged
        if score > best_score:
            best_step, best_score = old.step, score
            if weights == "best":
                checkpoints.save_best(self.run, best_step, self._weights())
        if weights == "average" and old.step * 2 >= self.config.steps:
            averaged += 1
            self._fold_in(averaged)
        self.progress = replace(old, best_step=best_step, best_score=best_score, averaged=averaged)

    def _fold_in(self, count: int) -> None:
        """Move the running mean of the weights towards the present ones."""
        for name, value in self.model.state_dict().items():
            if name in self.average and value.is_floating_point():
                self.average[name].lerp_(value.cpu(), 1 / count)
            else:
                self.average[name] = value.detach().cpu().clone()

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.contiguous() for name, value in self.model.state_dict().items()}

    def _save(self) -> None:
        saved = Checkpoint(self.progress, self._weights(), self.optimizers.state(), self.average)
        place = checkpoints.save(self.run, self.config, saved)
        self.reporter.saved(self.progress.step, place)

    @contextmanager
    def _batches(self) -> Iterator[Iterator[_Coming]]:
        """Batches on the device with the position after each, made ahead in another thread."""
        queue: Queue[_Coming | BaseException] = Queue(_AHEAD)
        stop, start, places = Event(), self.progress.step, self.progress.positions

        def size(step: int, task: Task) -> int:
            if task.batch_size is not None:
                return task.batch_size
            return phase_at(self.config.phases, min(step, self.config.steps - 1))[0].batch_size

        def produce() -> None:
            try:
                for mixed in self.mixture.batches(start, places, size):
                    if stop.is_set():
                        return
                    queue.put((mixed.stream, mixed.batch.after, self.model.collate(mixed)))
            except BaseException as error:
                queue.put(error)

        def consume() -> Iterator[_Coming]:
            while True:
                item = queue.get()
                if isinstance(item, BaseException):
                    raise item
                yield item[0], item[1], item[2].to(self.model.device)

        producer = Thread(target=produce, name="batches", daemon=True)
        producer.start()
        try:
            yield consume()
        finally:
            stop.set()
            while producer.is_alive():
                if not queue.empty():
                    queue.get_nowait()
                producer.join(0.01)


class _Meter:
    """Means over a stretch of steps."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._clear()

    def add(
        self, step: int, task: str, loss: float, correct: int, pairs: int
    ) -> dict[str, float] | None:
        """Count a step of a task in; at the end of a stretch, its means, also by task."""
        self.losses.setdefault(task, []).append(loss)
        self.correct += correct
        self.pairs += pairs
        if step % self.every:
            return None
        seconds = time.perf_counter() - self.begun
        metrics = {
            "loss": fmean(chain(*self.losses.values())),
            "accuracy": self.correct / self.pairs,
            "pairs_per_second": self.pairs / seconds,
        }
        if len(self.losses) > 1:
            metrics |= {f"loss {name}": fmean(all_of) for name, all_of in self.losses.items()}
        self._clear()
        return metrics

    def _clear(self) -> None:
        self.losses: dict[str, list[float]] = {}
        self.correct, self.pairs = 0, 0
        self.begun = time.perf_counter()


@contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """SIGINT and SIGTERM join the list instead of ending the process; a second one ends it."""
    received: list[signal.Signals] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))

    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, receive)
    except ValueError:  # outside the main thread, where no signal arrives
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
