"""Steps of training: the gradient of a batch, summed over workers, checked, and followed."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training.config.settings import Phase, RunConfig
from rejoinder.training.config.tasks import Task
from rejoinder.training.loop.gradients import Share, add_gradients
from rejoinder.training.loop.model import CollatedBatch, TrainableModel
from rejoinder.training.loop.optimizers import Optimizers, phase_at
from rejoinder.training.losses.in_batch import StepLoss
from rejoinder.training.rows.whitening import whiten
from rejoinder.training.workers.exchange import CountedPeers, Exchange, Traffic
from rejoinder.training.workers.workers import Workers

_NEXT_WORKER = 1 << 52
"""What is added to the seed of a step for each further worker."""

_LOOK_EVERY = 20
"""Steps between looks at what other workers want, on GPUs: each look makes a GPU wait."""


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
        self.optimizers, self.workers = optimizers, workers
        self.exchange = Exchange(workers)
        peers = CountedPeers(share.peers.part, share.peers.group, exchange=self.exchange)
        self.share = replace(share, peers=peers)
        self.tasks = {task.label: number for number, task in enumerate(config.mixture)}
        self.whitened = -1
        """The last step that began by whitening rows."""
        self._flags = torch.zeros(2, device=model.device)
        self._first_bad = torch.full((), -1, dtype=torch.int64, device=model.device)
        """() first step whose loss or gradient was not finite, -1 if there is none; on GPUs, where
        looking at each step would make them wait."""

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
            TrainingError: on the CPU, the loss or a gradient is not finite; the weights are as
                before the step.
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
            flags = self._told(step, facts[-2:])
        by_task = facts[:-2].view(-1, 3)
        self._check(step, by_task[:, 0].sum() / by_task[:, 2].sum(), self.optimizers.finite())
        self.optimizers.step(phase, within)
        return by_task, flags

    def _told(self, step: int, flags: Tensor) -> tuple[bool, bool]:
        """Returns the flags that any worker has raised; GPUs look at them now and then."""
        self._flags = torch.maximum(self._flags, flags)
        if self.model.device.type == "cuda" and (step + 1) % _LOOK_EVERY:
            return False, False
        stop, late = (self._flags > 0).tolist()
        return bool(stop), bool(late)

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
        behind = [each for task in tasks for each in self.model.after_embedding(task)]
        encoder = self.model.get_submodule("encoder").parameters()
        return list(dict.fromkeys([*(each for each in encoder if each.requires_grad), *behind]))

    def _check(self, step: int, loss: Tensor, finite: Tensor) -> None:
        """Refuses a step whose loss or gradient is not finite; on GPUs `refuse_bad` does later."""
        if self.model.device.type == "cuda":
            bad = ~(finite & torch.isfinite(loss)) & (self._first_bad < 0)
            self._first_bad.masked_fill_(bad, step + 1)
            return
        advice = (
            "the weights were not changed by it. Lower the learning rate, or train in fp32; the "
            "last checkpoint is intact."
        )
        if not torch.isfinite(loss):
            raise self.workers.error(f"the loss of batch {step + 1} is {loss.item()}; {advice}")
        if not finite:
            raise self.workers.error(
                f"the gradient of batch {step + 1} is not finite (its loss is {loss.item():.4g}); "
                f"{advice}"
            )

    def refuse_bad(self) -> None:
        """Raises a TrainingError if the weights of this session are no numbers any more."""
        step = self._first_bad.item()
        if step >= 0:
            raise self.workers.error(
                f"the loss or the gradient of batch {step} is not finite. Lower the learning rate, "
                "or train in fp32; the last checkpoint is intact."
            )

    def _whiten(self, step: int, phase: Phase) -> None:
        assert isinstance(self.features, WordFeatures)  # noqa: S101 -- a config check sees to it
        self.whitened = step
        for table in self.model.encoder.tables():
            whiten(table.weight, len(self.features.vocabulary), phase.sif, phase.whitening)
            self.workers.broadcast([table.weight])

    def traffic(self, every: int) -> dict[str, float]:
        """Returns the MB that this worker sent per step, since the call `every` steps before."""
        if self.workers.count == 1:
            return {}
        sent, self.exchange.traffic = self.exchange.traffic, Traffic()
        steps = every * 1e6
        candidates = {"mb_sent_candidates": sent.candidates / steps} if self.share.joins else {}
        return {
            "mb_sent_rows": sent.rows / steps,
            "mb_sent_dense": sent.dense / steps,
            **candidates,
            "mb_dense_all_reduce": sent.whole / steps,
        }
