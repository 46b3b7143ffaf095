"""Steps of training: the gradient of a batch, summed over workers, checked, and followed.

A loss over candidates of the batch needs the embeddings of all rows, not their activations. With
gradient caching (Gao et al. 2021, §3.2) the batch is encoded in small parts without gradients, the
loss gives the gradients of the embeddings, and each part is encoded again to carry its own on to
the parameters.
"""

from typing import Any

import torch
from torch import Tensor, nn

from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training.config.settings import Phase, RunConfig
from rejoinder.training.config.tasks import Task
from rejoinder.training.loop.machine import seed_generators
from rejoinder.training.loop.model import CollatedBatch, TrainableModel
from rejoinder.training.loop.optimizers import Optimizers, phase_at
from rejoinder.training.losses.in_batch import StepLoss
from rejoinder.training.rows.whitening import whiten
from rejoinder.training.workers.division import Share
from rejoinder.training.workers.exchange import Exchange
from rejoinder.training.workers.workers import Workers

_NEXT_WORKER = 1 << 52
"""What is added to the seed of a step for each further worker."""

_NEXT_CHUNK = 1 << 40
"""What is added to the seed of a step for each further part of a batch."""


class Steps:
    """Takes the steps of a run, as one of its workers."""

    def __init__(
        self,
        config: RunConfig,
        model: TrainableModel,
        features: TextFeatures,
        optimizers: Optimizers,
        workers: Workers,
        share: Share,
    ) -> None:
        self.config, self.model, self.features = config, model, features
        self.optimizers, self.workers, self.share = optimizers, workers, share
        self.exchange = Exchange(workers)
        self.tasks = {task.label: number for number, task in enumerate(config.mixture)}
        self.whitened = -1
        """The last step that began by whitening rows."""

    def take(
        self, step: int, batch: CollatedBatch, flags: tuple[bool, bool]
    ) -> tuple[Tensor, tuple[bool, bool]]:
        """Takes a step, counted from 0.

        Args:
            step: the number of the step.
            batch: the part of the batch of this worker, on the model's device.
            flags: whether this worker wants to stop, and whether it is out of time.

        Returns:
            The facts on the step for a `Meter`, and the flags if any worker has raised them.

        Raises:
            TrainingError: the loss or a gradient is not finite; the weights are as before the step.
            LostError: another worker ended; the weights are as before the step.
        """
        phase, within = phase_at(self.config.phases, step)
        if phase.whitens and not within:
            self._whiten(step, phase)
        self.optimizers.zero()
        # dropout follows from the seed, the step and the worker: a resumed run draws the same
        seed = self.config.training.seed * 1_000_003 + step + self.workers.rank * _NEXT_WORKER
        result = add_gradients(self.model, batch, self.share, seed)
        self.optimizers.collect()
        facts = self._facts(batch, result, flags)
        facts = self.exchange(self.optimizers, self._trained(batch.task), facts)
        if self.workers.count > 1:
            stop, late = (facts[-2:] > 0).tolist()
            flags = bool(stop), bool(late)
        by_task = facts[:-2].view(-1, 3)
        self._check(step, by_task[:, 0].sum() / by_task[:, 2].sum(), self.optimizers.finite())
        self.optimizers.step(phase, within)
        return by_task, flags

    def _facts(self, batch: CollatedBatch, result: StepLoss, flags: tuple[bool, bool]) -> Tensor:
        """Returns what workers tell each other of a step: (3 T + 2,) float32, see `Meter.add`."""
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
        """Returns the dense parameters that a step trains, at whatever worker."""
        tasks = self.config.mixture if self.config.training.tasks_by == "worker" else (task,)
        after = [each for task in tasks for each in self.model.after_embedding(task)]
        encoder = self.model.get_submodule("encoder").parameters()
        return list(dict.fromkeys([*(each for each in encoder if each.requires_grad), *after]))

    def _check(self, step: int, loss: Tensor, finite: Tensor) -> None:
        """Refuses a step whose loss or gradient is not finite."""
        advice = (
            "the weights were not changed by it. Lower the learning rate, or train in fp32; the "
            "last checkpoint is intact."
        )
        if torch.isfinite(loss) & finite:  # one question to a GPU, which takes time to answer
            return
        if not torch.isfinite(loss):
            raise self.workers.error(f"the loss of batch {step + 1} is {loss.item()}; {advice}")
        raise self.workers.error(
            f"the gradient of batch {step + 1} is not finite (its loss is {loss.item():.4g}); "
            f"{advice}"
        )

    def _whiten(self, step: int, phase: Phase) -> None:
        assert isinstance(self.features, WordFeatures)  # noqa: S101 -- a config check sees to it
        self.whitened = step
        for table in self.model.encoder.tables():
            whiten(table.weight, len(self.features.vocabulary), phase.sif, phase.whitening)
            self.workers.broadcast([table.weight])


def add_gradients(model: TrainableModel, batch: CollatedBatch, share: Share, seed: int) -> StepLoss:
    """Adds this worker's part of the gradient of a batch; the sum over workers is the gradient.

    Dropout draws from torch's generators, which are seeded with `seed` and the number of the part
    of the batch.

    Returns:
        The loss of the worker's rows, without gradient.
    """
    weight = share.of_all * batch.rows / batch.all_rows
    several = len(batch.chunks) > 1
    with torch.set_grad_enabled(not several):
        parts = [_embedded(model, chunk, seed, number) for number, chunk in enumerate(batch.chunks)]
    embeddings = torch.cat(parts) if several else parts[0]
    if not embeddings.requires_grad:  # also if all sentences are empty
        embeddings = embeddings.detach().requires_grad_()
    result = model.loss(batch, embeddings)
    result.loss.backward(result.loss.new_tensor(weight))  # type: ignore[no-untyped-call]
    if several:
        assert embeddings.grad is not None  # noqa: S101 -- the loss depends on it
        _carry_on(model, batch, embeddings.grad, seed)
    return StepLoss(result.loss.detach(), result.correct)


def _carry_on(model: TrainableModel, batch: CollatedBatch, gradient: Tensor, seed: int) -> None:
    """Carries the gradient by the embeddings on to the encoder's parameters, part by part."""
    start = 0
    for number, chunk in enumerate(batch.chunks):
        embeddings = _embedded(model, chunk, seed, number)
        part = gradient[start : start + len(embeddings)]
        if embeddings.requires_grad:
            embeddings.backward(part)  # type: ignore[no-untyped-call]
        start += len(part)


def _embedded(model: TrainableModel, chunk: Any, seed: int, number: int) -> Tensor:
    """Returns the embeddings of a part of a batch; twice the same, dropout included."""
    seed_generators(model.device, seed + number * _NEXT_CHUNK)
    return model.embed(chunk)
