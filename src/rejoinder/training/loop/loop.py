"""The training loop: steps, evaluations and checkpoints of a run, from start to end.

A step computes the gradient of a batch, sums it over workers, checks it and applies it. A loss over
the candidates in a batch needs the embeddings of all rows, but not their activations. With gradient
caching (Gao et al. 2021, §3.2), the batch is encoded in small parts without gradients, the loss
gives the gradients of the embeddings, and each part is encoded again to pass its gradient on to the
parameters.
"""

import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from rejoinder.errors import TrainingError
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training.config.settings import Phase, RunConfig
from rejoinder.training.data.preparation import MixedBatch, Mixture
from rejoinder.training.data.stream import Position, prefetched
from rejoinder.training.initial_rows import whiten
from rejoinder.training.loop import checkpoint as checkpoints
from rejoinder.training.loop.checkpoint import Checkpoint, Reporter, TrainingState
from rejoinder.training.loop.model import (
    CollatedBatch,
    LiveEncoder,
    Optimizers,
    TrainableModel,
    phase_at,
)
from rejoinder.training.losses.in_batch import StepLoss
from rejoinder.training.objectives import Task
from rejoinder.training.workers import (
    ALONE,
    LostError,
    Workers,
    collected_signals,
    exchange,
    seed_generators,
)

Evaluate = Callable[[LiveEncoder], Mapping[str, float]]
"""Scores a model during training."""

_AHEAD = 8
"""Number of batches to make ahead."""
_NEXT_WORKER = 1 << 52
"""Added to the seed of a step for each further worker."""
_NEXT_CHUNK = 1 << 40
"""Added to the seed of a step for each further part of a batch."""


@dataclass(frozen=True)
class Limits:
    """When to stop before all steps of the config are done."""

    stop_at: int | None = None
    """Step to stop at, with a checkpoint but no model."""
    seconds: float | None = None
    """Time in steps, over all sessions of the run, after which to stop, with a model."""


@dataclass
class Trainer:
    """Trains a model: steps, evaluations, checkpoints.

    The objects that it is given provide batches, reports and evaluations.
    """

    config: RunConfig
    run: Path
    model: TrainableModel
    features: TextFeatures
    mixture: Mixture
    reporter: Reporter
    evaluate: Evaluate
    workers: Workers = ALONE

    def __post_init__(self) -> None:
        dense = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizers = Optimizers(dense, self.model.encoder.tables(), self.config.optimizer)
        self.state = TrainingState(0, {}, 0.0, self.workers.count)
        self.scores: dict[str, float] = {}
        """Scores of the last evaluation."""
        self.tasks = {task.label: number for number, task in enumerate(self.config.mixture)}
        self.whitened = -1
        """The last step that whitened rows at its beginning."""
        self.workers_before = self.workers.count
        """Number of workers before this session."""
        self._meter = Meter(self.config.training.log_every, list(self.tasks))
        self._stopping = False
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
        self.workers_before = saved.state.workers
        self.state = replace(saved.state, workers=self.workers.count)
        if saved.stretch is not None and saved.stretch.shape[1:] != (len(self.tasks), 3):
            raise TrainingError(f"checkpoint {folder} does not fit the run: it has other tasks.")
        stretch = None if saved.stretch is None else saved.stretch.to(self.model.device)
        self._meter = Meter(self.config.training.log_every, list(self.tasks), stretch)

    def train(self, limits: Limits) -> bool:
        """Takes steps until all are done, a limit is reached, or a signal asks to stop.

        SIGINT (Ctrl-C) and SIGTERM let the current step finish. A checkpoint is saved at the end,
        except after a loss or a gradient that is not finite. Torch's generators are seeded at each
        step: callers wrap this in `workers.own_torch_state`.

        Returns:
            Whether all steps of the config are done.

        With several workers, a signal to one of them stops all.

        Raises:
            TrainingError: a loss or a gradient is not finite; on the CPU the weights are as before
                that batch. Or another worker ended; worker 0 saves a checkpoint if it can.
        """
        try:
            return self._train(limits)
        except LostError:
            # the weights are from after `state.step`
            if self.workers.leads and self.whitened != self.state.step:
                self._write_checkpoint()
            raise self.workers.lost(
                f"a worker of the run ended before step {self.state.step + 1} was done; "
                "`resume=True` continues from the last checkpoint, if there is one."
            ) from None

    def _train(self, limits: Limits) -> bool:
        last = min(self.config.steps, limits.stop_at or self.config.steps)
        self.model.train()
        # other machines may have drawn other weights
        self.workers.broadcast([value.detach() for value in self.model.state_dict().values()])
        made = prefetched(self._batches(), _AHEAD)
        with collected_signals() as signals, closing(made) as batches:
            while self.state.step < last and not self._stopping:
                begun = time.perf_counter()
                mixed, collated = next(batches)
                late = limits.seconds is not None and self.state.seconds >= limits.seconds
                flags = bool(signals), late and self.workers.leads
                facts, told = self.take(self.state.step, collated, flags)
                self._report(self._meter.add(self.state.step + 1, facts))
                seconds = self.state.seconds + time.perf_counter() - begun
                self._advance(mixed.stream, mixed.batch.after, seconds)
                if self.workers.count == 1:  # several workers agreed on this before the step
                    late = limits.seconds is not None and seconds >= limits.seconds
                    told = bool(signals), late
                self._stopping, self.out_of_time = told
                if self.out_of_time:
                    break
        if self._stopping:
            self.interrupted = signals[0] if signals else signal.SIGTERM
        done = self.state.step >= self.config.steps
        if (done or self.out_of_time) and self.state.evaluated != self.state.step:
            self._evaluate()
        self._save()
        return done

    def _batches(self) -> Generator[tuple[MixedBatch, CollatedBatch], None, None]:
        """Yields the batches of all remaining steps, on the model's device.

        Runs in the prefetching thread.
        """

        def size(step: int, task: Task) -> int:
            if task.batch_size is not None:
                return task.batch_size
            return phase_at(self.config.phases, min(step, self.config.steps - 1))[0].batch_size

        for mixed in self.mixture.batches(self.state.step, self.state.positions, size):
            yield mixed, self.model.collate(mixed).to(self.model.device)

    def _report(self, metrics: Mapping[str, float] | None) -> None:
        if metrics is not None:
            scales = {
                f"scale {name}": float(self.model.scale(name).detach())
                for name in self.model.log_scales
            }
            self.reporter.step(self.state.step + 1, {**metrics, **scales})

    def _advance(self, stream: str, position: Position, seconds: float) -> None:
        """Counts a finished step; evaluates and saves if the config says so."""
        training, step = self.config.training, self.state.step + 1
        positions = {**self.state.positions, stream: position}
        self.state = replace(self.state, step=step, positions=positions, seconds=seconds)
        if training.evaluate_every and step % training.evaluate_every == 0:
            self._evaluate()
        if training.checkpoint_every and step % training.checkpoint_every == 0:
            self._save()

    def _evaluate(self) -> None:
        """Scores the model in worker 0."""
        with self.workers.agreed():
            if self.workers.leads:
                self.scores = dict(self.evaluate(LiveEncoder(self.model, self.features)))
                if self.scores:
                    self.reporter.evaluation(self.state.step, self.scores)
        # in all workers, as it decides whether they evaluate again at the end
        self.state = replace(self.state, evaluated=self.state.step)

    def _save(self) -> None:
        """Saves a checkpoint in worker 0."""
        with self.workers.agreed():
            if self.workers.leads:
                self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        weights = {name: value.contiguous() for name, value in self.model.state_dict().items()}
        saved = Checkpoint(self.state, weights, self.optimizers.state(), self._meter.stretch())
        folder = checkpoints.save(self.run, self.config, saved)
        self.reporter.saved(self.state.step, folder)

    def take(
        self, step: int, batch: CollatedBatch, flags: tuple[bool, bool]
    ) -> tuple[Tensor, tuple[bool, bool]]:
        """Takes a step, counted from 0.

        Args:
            step: the number of the step.
            batch: the part of the batch of this worker, on the model's device.
            flags: whether this worker wants to stop, and whether it is out of time.

        Returns:
            The facts about the step for a `Meter`, and each flag, set if any worker has set it.

        Raises:
            TrainingError: the loss or a gradient is not finite; the weights are as before the step.
            LostError: another worker ended; the weights are as before the step.
        """
        phase, within = phase_at(self.config.phases, step)
        if phase.whitens and not within:
            self._whiten(step, phase)
        self.optimizers.zero()
        # dropout depends on the seed, the step and the worker, so a resumed run draws the same
        seed = self.config.training.seed * 1_000_003 + step + self.workers.rank * _NEXT_WORKER
        result = add_gradients(self.model, batch, seed)
        self.optimizers.collect()
        facts = self._facts(batch, result, flags)
        facts = exchange(self.workers, self.optimizers, self._trained(batch.task), facts)
        if self.workers.count > 1:
            stop, late = (facts[-2:] > 0).tolist()
            flags = bool(stop), bool(late)
        by_task = facts[:-2].view(-1, 3)
        self._check(step, by_task[:, 0].sum() / by_task[:, 2].sum(), self.optimizers.finite())
        self.optimizers.step(phase, within)
        return by_task, flags

    def _facts(self, batch: CollatedBatch, result: StepLoss, flags: tuple[bool, bool]) -> Tensor:
        """Returns the facts that workers exchange: (3 T + 2,) float32, see `Meter.add`."""
        facts = result.loss.new_zeros(3 * len(self.tasks) + 2)
        first = 3 * self.tasks[batch.task.label]
        facts[first] = result.loss * batch.rows
        facts[first + 1] = result.correct
        facts[first + 2] = batch.rows
        for place, flag in zip((-2, -1), flags, strict=True):
            if flag:
                facts[place] = 1.0
        return facts

    def _trained(self, task: Task) -> list[nn.Parameter]:
        """Returns the dense parameters that a step of a task trains."""
        encoder = self.model.get_submodule("encoder").parameters()
        trained = [each for each in encoder if each.requires_grad]
        return [*trained, *self.model.after_embedding(task)]

    def _check(self, step: int, loss: Tensor, finite: Tensor) -> None:
        """Refuses a step whose loss or gradient is not finite."""
        if torch.isfinite(loss) & finite:  # a single transfer from a GPU, which is slow
            return
        what = f"the loss of batch {step + 1} is {loss.item()}"
        if torch.isfinite(loss):
            what = f"the gradient of batch {step + 1} is not finite (its loss is {loss.item():.4g})"
        raise self.workers.error(
            f"{what}; the weights were not changed by it. Lower the learning rate, or train in "
            "fp32; the last checkpoint is intact."
        )

    def _whiten(self, step: int, phase: Phase) -> None:
        assert isinstance(self.features, WordFeatures)  # noqa: S101 -- a config check sees to it
        self.whitened = step
        for table in self.model.encoder.tables():
            whiten(table.weight, len(self.features.vocabulary), phase.sif, phase.whitening)
            self.workers.broadcast([table.weight])


def add_gradients(model: TrainableModel, batch: CollatedBatch, seed: int) -> StepLoss:
    """Adds this worker's part of the gradient of a batch; the sum over workers is the gradient.

    Dropout draws from torch's generators, which are seeded with `seed` and the number of the part
    of the batch.

    Returns:
        The loss of the worker's rows, detached.
    """
    weight = batch.rows / batch.all_rows
    several = len(batch.chunks) > 1
    with torch.set_grad_enabled(not several):
        parts = [_embedded(model, chunk, seed, number) for number, chunk in enumerate(batch.chunks)]
    embeddings = torch.cat(parts) if several else parts[0]
    if not embeddings.requires_grad:  # also if all sentences are empty
        embeddings = embeddings.detach().requires_grad_()
    result = model.loss(batch, embeddings)
    result.loss.backward(result.loss.new_tensor(weight))  # type: ignore[no-untyped-call]
    if several:  # pass the gradient on to the encoder's parameters, part by part
        assert embeddings.grad is not None  # noqa: S101 -- the loss depends on it
        by_part = torch.split(embeddings.grad, list(map(len, parts)))
        for number, (chunk, gradient) in enumerate(zip(batch.chunks, by_part, strict=True)):
            again = _embedded(model, chunk, seed, number)
            if again.requires_grad:
                again.backward(gradient)  # type: ignore[no-untyped-call]
    return StepLoss(result.loss.detach(), result.correct)


def _embedded(model: TrainableModel, chunk: Any, seed: int, number: int) -> Tensor:
    """Returns the embeddings of a part of a batch; the same in each call, even with dropout."""
    seed_generators(model.device, seed + number * _NEXT_CHUNK)
    return model.embed(chunk)


class Meter:
    """Computes means over `every` steps."""

    def __init__(self, every: int, tasks: Sequence[str], stretch: Tensor | None = None) -> None:
        """Prepares means for tasks with these labels, continuing a `stretch` of steps if given."""
        self.every, self.tasks = every, tasks
        self._facts: list[Tensor] = [] if stretch is None else list(stretch)
        """Facts about the stretch so far. Summing them in each step would be as slow as a layer."""
        self._earlier = len(self._facts)
        """Number of these from an earlier session."""
        self._begun = time.perf_counter()

    def add(self, step: int, facts: Tensor) -> dict[str, float] | None:
        """Adds a step, counted from 1; returns the means of the stretch if this step ends it.

        If there are several tasks, the means include losses by task. The numbers stay on their
        device until then, so that no step waits for it.

        Args:
            step: the number of the step.
            facts: (T, 3), for each task: the loss times the number of rows, the number of rows
                ranked or classified correctly, and the number of rows.
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
        """Returns the facts of the stretch so far, (S, T, 3); None if it has not begun."""
        return torch.stack(self._facts).cpu() if self._facts else None
