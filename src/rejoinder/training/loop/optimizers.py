"""Optimisers: PyTorch's for dense layers, our own for the rows of embedding tables."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rejoinder.encoders.nn.sparse import RowGradient, SparseTable
from rejoinder.training.config.settings import OptimizerConfig, Phase

_ADAM_BETAS = 0.9, 0.99
"""Decay rates of the mean of gradients and of their squares."""
_SQUARABLE = 1e18
"""Numbers below it have squares that float32 can hold, and many of them."""


def phase_at(phases: Iterable[Phase], step: int) -> tuple[Phase, int]:
    """Returns the phase of `step` (from 0), and the number of the step within it.

    Raises:
        IndexError: the step lies beyond the last phase.
    """
    for phase in phases:
        if step < phase.steps:
            return phase, step
        step -= phase.steps
    raise IndexError(f"step {step} lies beyond the last phase")


def rate_factor(phase: Phase, step: int) -> float:
    """Returns the factor of the learning rates at `step` (from 0) of `phase`.

    >>> phase = Phase(steps=10, warmup_steps=2, decay="linear")
    >>> [rate_factor(phase, step) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.125]
    """
    if step < phase.warmup_steps:
        return (step + 1) / phase.warmup_steps
    if phase.decay == "none":
        return 1.0
    return (phase.steps - step) / (phase.steps - phase.warmup_steps)


class RowOptimizer:
    """SGD or Adagrad on the rows of an embedding table that a step touched.

    Adagrad keeps one accumulator per row, the sum of the mean squares of its gradients. That takes
    1 / dimension of the memory and memory traffic of the usual accumulator per value.
    """

    def __init__(self, table: SparseTable, *, adagrad: bool) -> None:
        self.table = table
        self.pending: RowGradient | None = None
        """The gradient of this step, between `collect` and `step`."""
        rows = len(table.weight) if adagrad else 0
        self.sums = torch.zeros(rows, device=table.weight.device)
        """(rows,) float32 for Adagrad, (0,) for SGD."""

    def collect(self) -> None:
        """Takes the gradient of this step from the table."""
        self.pending = self.table.take_gradient()

    @torch.no_grad()
    def gradient_sum(self) -> Tensor:
        """Returns () a number that is finite if and only if the squares of this step's sums are."""
        assert self.pending is not None  # noqa: S101 -- `collect` came before
        by_owner = self.pending.by_owner
        if by_owner.device.type == "cpu" and by_owner.numel():
            # no sum of so many terms as there are ids is beyond this
            low, high = torch.aminmax(by_owner)  # a twentieth of the time of a norm
            largest = torch.maximum(-low, high) * len(self.pending.owners)
            if largest < _SQUARABLE:
                return largest
        return self.pending.summed().square().sum()

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Moves the touched rows against their gradients."""
        assert self.pending is not None  # noqa: S101 -- `collect` came before
        self.pending.move(self.table.weight.detach(), self.sums, learning_rate)
        self.pending = None


class Optimizers:
    """All optimisers of a run, stepped together."""

    def __init__(
        self, dense: list[nn.Parameter], tables: list[SparseTable], config: OptimizerConfig
    ) -> None:
        # `step` sets the learning rate
        self.dense: torch.optim.Optimizer = (
            torch.optim.Adam(dense, lr=0.0, betas=_ADAM_BETAS, fused=True)
            if config.dense == "adam"
            else torch.optim.SGD(dense, lr=0.0)
        )
        self.rows = [RowOptimizer(table, adagrad=config.table == "adagrad") for table in tables]

    def zero(self) -> None:
        """Clears the gradients of the last step."""
        for group in self.dense.param_groups:  # a third of the time of `zero_grad`
            for parameter in group["params"]:
                parameter.grad = None

    def collect(self) -> None:
        """Takes the gradients of the rows of tables, after the backward pass."""
        for rows in self.rows:
            rows.collect()

    def finite(self) -> Tensor:
        """Returns () bool, whether all gradients of this step are finite.

        Called once, after `collect` and before `step`.
        """
        sums = [rows.gradient_sum() for rows in self.rows]
        for group in self.dense.param_groups:
            found = [p.grad for p in group["params"] if p.grad is not None]
            if found and found[0].is_cuda:  # a few launches for all, not some for each
                sums += torch._foreach_norm(found, math.inf)
            else:
                sums += [gradient.sum() for gradient in found]
        return torch.isfinite(torch.stack(sums)).all() if sums else torch.tensor(True)

    def step(self, phase: Phase, step: int) -> None:
        """Moves all parameters, after `finite`; `step` counts from 0 within `phase`."""
        factor = rate_factor(phase, step)
        for group in self.dense.param_groups:
            group["lr"] = phase.learning_rate * factor
        self.dense.step()
        table_rate = phase.table_learning_rate
        for rows in self.rows:
            rows.step((phase.learning_rate if table_rate is None else table_rate) * factor)

    def state(self) -> dict[str, Tensor]:
        """Returns every tensor of the optimisers' memory, by a name that does not change."""
        state = {f"rows.{number}": rows.sums for number, rows in enumerate(self.rows)}
        for parameter, values in self.dense.state_dict()["state"].items():
            for name, value in values.items():
                state[f"dense.{parameter}.{name}"] = torch.as_tensor(value)
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restores what `state` returned, in this or another process."""
        for number, rows in enumerate(self.rows):
            rows.sums.copy_(state[f"rows.{number}"])
        memory: dict[int, dict[str, Tensor]] = {}
        for key, value in state.items():
            if key.startswith("dense."):
                _, parameter, name = key.split(".")
                memory.setdefault(int(parameter), {})[name] = value
        tree = self.dense.state_dict()
        self.dense.load_state_dict({"state": memory, "param_groups": tree["param_groups"]})
