"""The training loop: steps, evaluations and checkpoints of a run, from start to end."""

import math
import signal
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from rejoinder.errors import TrainingError
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training import checkpoint as checkpoints
from rejoinder.training.batches import Position
from rejoinder.training.checkpoint import Checkpoint, TrainingState
from rejoinder.training.machine import collected_signals, seed_generators
from rejoinder.training.mixture import MixedBatch, Mixture
from rejoinder.training.model import CollatedBatch, LiveEncoder, TrainableModel
from rejoinder.training.optimizers import Optimizers, phase_at
from rejoinder.training.prefetch import Prefetcher
from rejoinder.training.reporting import Meter, Reporter
from rejoinder.training.settings import Phase, RunConfig
from rejoinder.training.tasks.base import Task
from rejoinder.training.whitening import whiten

Evaluate = Callable[[LiveEncoder], Mapping[str, float]]
"""Scores a model in training; the first score chooses the best weights."""

_AHEAD = 8
"""Number of batches that are made ahead."""


@dataclass(frozen=True)
class Limits:
    """When to stop before the config's steps are done."""

    stop_at: int | None = None
    """Step to stop at, with a checkpoint and no model."""
    seconds: float | None = None
    """Time in steps, over all sessions of the run, after which to stop, with a model."""


@dataclass
class Trainer:
    """Trains a model: steps, evaluations, checkpoints.

    Batches, reports and evaluations come from the objects that it is given.
    """

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
        self.state = TrainingState(0, {}, 0.0, -1, -math.inf, 0)
        self.average: dict[str, Tensor] = {}
        """Running mean of the weights at evaluations, if the config exports it."""
        self.scores: dict[str, float] = {}
        """Scores of the last evaluation."""
        self.out_of_time = False
        self.interrupted: signal.Signals | None = None
        """The signal that stopped the run, if one did."""

    def resume(self, folder: Path) -> None:
        """Continues from a checkpoint.

        Raises:
            TrainingError: the checkpoint is damaged or does not fit the run.
        """
        saved = checkpoints.load(folder, self.config)
        try:
            self.model.load_state_dict(saved.weights)
            self.optimizers.load_state(saved.optimizer)
        except (RuntimeError, KeyError) as error:
            raise TrainingError(f"checkpoint {folder} does not fit the run: {error}") from None
        self.state, self.average = saved.state, saved.average

    def train(self, limits: Limits) -> bool:
        """Takes steps until the config's are done, a limit is reached, or a signal asks to stop.

        SIGINT (Ctrl-C) and SIGTERM let the current step finish. A checkpoint is saved at the end,
        except after a loss or a gradient that is not finite. Torch's generators are seeded at each
        step: callers wrap this in `machine.own_torch_state`.

        Returns:
            Whether the config's steps are done.

        Raises:
            TrainingError: a loss or a gradient is not finite; the weights are as before that batch.
        """
        last = min(self.config.steps, limits.stop_at or self.config.steps)
        meter = Meter(self.config.training.log_every)
        self.model.train()
        with collected_signals() as signals, Prefetcher(self._batches(), _AHEAD) as batches:
            while self.state.step < last and not signals:
                begun = time.perf_counter()
                mixed, collated = next(batches)
                self._step(collated.to(self.model.device), meter)
                seconds = self.state.seconds + time.perf_counter() - begun
                self._advance(mixed.stream, mixed.batch.after, seconds)
                if limits.seconds is not None and seconds >= limits.seconds:
                    self.out_of_time = True
                    break
        self.interrupted = signals[0] if signals else None
        done = self.state.step >= self.config.steps
        every = self.config.training.evaluate_every
        if (done or self.out_of_time) and not (every and self.state.step % every == 0):
            self._evaluate()
        self._save()
        return done

    def _batches(self) -> Generator[tuple[MixedBatch, CollatedBatch], None, None]:
        """Yields the batches of all further steps; runs in the thread that prefetches."""

        def size(step: int, task: Task) -> int:
            if task.batch_size is not None:
                return task.batch_size
            return phase_at(self.config.phases, min(step, self.config.steps - 1))[0].batch_size

        for mixed in self.mixture.batches(self.state.step, self.state.positions, size):
            yield mixed, self.model.collate(mixed)

    def _step(self, batch: CollatedBatch, meter: Meter) -> None:
        step = self.state.step
        # dropout follows from the seed and the step: a resumed run draws the same
        seed_generators(self.model.device, self.config.training.seed * 1_000_003 + step)
        phase, within = phase_at(self.config.phases, step)
        if phase.whitens and not within:
            self._whiten(phase)
        self.optimizers.zero()
        result = self.model.loss(batch)
        loss = result.loss.item()
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of batch {step + 1} is {loss}; the weights were not changed by it. "
                "Lower the learning rate, or train in fp32; the last checkpoint is intact."
            )
        result.loss.backward()  # type: ignore[no-untyped-call]
        if not self.optimizers.finite():
            raise TrainingError(
                f"the gradient of batch {step + 1} is not finite (its loss is {loss:.4g}); the "
                "weights were not changed by it. Lower the learning rate, or train in fp32; the "
                "last checkpoint is intact."
            )
        self.optimizers.step(phase, within)
        metrics = meter.add(step + 1, batch.task.label, loss, int(result.correct), batch.rows)
        if metrics is not None:
            self.reporter.step(step + 1, metrics | self._scales())

    def _whiten(self, phase: Phase) -> None:
        assert isinstance(self.features, WordFeatures)  # noqa: S101 -- a config check sees to it
        for table in self.model.encoder.tables():
            whiten(table.weight, len(self.features.vocabulary), phase.sif, phase.whitening)

    def _scales(self) -> dict[str, float]:
        return {
            f"scale {name}": float(self.model.scale(name).detach())
            for name in self.model.log_scales
        }

    def _advance(self, stream: str, position: Position, seconds: float) -> None:
        """Counts the step that was taken; evaluates and saves where the config says so."""
        training, step = self.config.training, self.state.step + 1
        positions = {**self.state.positions, stream: position}
        self.state = replace(self.state, step=step, positions=positions, seconds=seconds)
        if training.evaluate_every and step % training.evaluate_every == 0:
            self._evaluate()
        if training.checkpoint_every and step % training.checkpoint_every == 0:
            self._save()

    def _evaluate(self) -> None:
        """Scores the model, and keeps its weights if they are the best or go into the average."""
        self.scores = dict(self.evaluate(LiveEncoder(self.model, self.features)))
        if self.scores:
            self.reporter.evaluation(self.state.step, self.scores)
        step, score = self.state.step, next(iter(self.scores.values()), -math.inf)
        weights = self.config.export.weights
        if score > self.state.best_score:
            self.state = replace(self.state, best_step=step, best_score=score)
            if weights == "best":
                checkpoints.save_best(self.run, step, self._weights())
        if weights == "average" and step * 2 >= self.config.steps:
            self.state = replace(self.state, averaged=self.state.averaged + 1)
            self._add_to_average(self.state.averaged)

    def _add_to_average(self, count: int) -> None:
        """Moves the running mean towards the present weights, the `count`-th that it holds."""
        for name, value in self.model.state_dict().items():
            if name in self.average and value.is_floating_point():
                self.average[name].lerp_(value.cpu(), 1 / count)
            else:
                self.average[name] = value.detach().cpu().clone()

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.contiguous() for name, value in self.model.state_dict().items()}

    def _save(self) -> None:
        saved = Checkpoint(self.state, self._weights(), self.optimizers.state(), self.average)
        folder = checkpoints.save(self.run, self.config, saved)
        self.reporter.saved(self.state.step, folder)
