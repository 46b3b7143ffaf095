"""All trained parameters of a run in one module, and the optimisers that update them.

PyTorch's optimisers update dense layers; `RowOptimizer` updates the rows of embedding tables.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.encoders import ENCODERS
from rejoinder.encoders.nn import layers
from rejoinder.protocols import Embeddings
from rejoinder.text.features import TextFeatures
from rejoinder.training.config.settings import OptimizerConfig, Phase, RunConfig
from rejoinder.training.data.preparation import MixedBatch
from rejoinder.training.losses.in_batch import StepInputs, StepLoss
from rejoinder.training.objectives import OBJECTIVES, Task, respond
from rejoinder.training.workers import multiplies_in_bfloat16

RESPONSES = "responses"
_CHUNK = 4_096
"""Number of sentences to encode at a time during evaluation."""
_ADAM_BETAS = 0.9, 0.99
"""Decay rates of the mean of gradients and of their squares."""
_SQUARABLE = 1e18
"""Limit below which float32 can hold the sum of many squares."""


def duplicates(left_keys: NDArray[np.int64], right_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (2, M) int64 index pairs (i, j) where row j's right text also fits row i's left text.

    This is so if their right texts are equal, or their left texts: the response of j then answers
    input i as well. Ascending in i, without the diagonal.

    Args:
        left_keys: (B,) int64, equal where left texts are equal.
        right_keys: (B,) int64, equal where right texts are equal.

    >>> duplicates(np.array([1, 2, 1]), np.array([7, 7, 9])).tolist()
    [[0, 0, 1, 2], [1, 2, 0, 0]]
    """
    size = len(left_keys)
    equal = [_equal_pairs(keys) for keys in (left_keys, right_keys)]
    flat = np.unique(np.concatenate([rows * size + columns for rows, columns in equal]))
    pairs = np.stack([flat // size, flat % size])
    return pairs[:, pairs[0] != pairs[1]]


def _equal_pairs(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns all (i, j) with `keys[i] == keys[j]`, for keys that occur more than once."""
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    several = np.flatnonzero(counts[group] > 1)
    sizes = counts[group[several]]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(several, sizes), order[np.repeat(starts[group[several]], sizes) + within]


@dataclass(frozen=True, slots=True)
class CollatedBatch(layers.OnDevice):
    """B rows in the form that the encoder and the loss need."""

    task: Task
    chunks: tuple[Any, ...]
    """Results of `TrainableEncoder.collate` for left sides, right sides and additional candidates,
    in this order: for all together, or for parts that are encoded one after another."""
    rows: int
    same: Tensor | None
    """(2, M) int64, see `in_batch_softmax`."""
    labels: Tensor | None
    all_rows: int
    """Number of rows of the batch in all workers together."""


class TrainableModel(nn.Module):
    """One encoder for all tasks, and the heads and scales of their objectives."""

    def __init__(self, rows: int, config: RunConfig, generator: torch.Generator) -> None:
        """Draws the weights from `generator`, which is on the CPU, for `rows` token ids."""
        super().__init__()
        self.config = config
        module = ENCODERS[config.encoder.kind].module_class
        self.encoder = cast("layers.TrainableEncoder", module(rows, config.encoder, generator))
        if config.training.rank_init:
            for table in self.encoder.tables():
                table.weigh_by_rank(config.training.rank_init)
        self.heads = nn.ModuleDict()
        for name, head in config.heads.items():
            width = head.inputs * self.encoder.dim
            self.heads[name] = layers.FeedForward(
                width, head.layers, head.activation, residual=head.residual, generator=generator
            )
        if RESPONSES not in config.objectives:
            self.heads[RESPONSES].requires_grad_(False)
        ranking = [task.label for task in config.mixture if OBJECTIVES[task.objective].ranks]
        self.log_scales = nn.ParameterDict()
        for name in sorted({RESPONSES, *ranking}):
            start = torch.tensor(math.log(config.objective.scale))
            scale = nn.Parameter(start, requires_grad=config.objective.learn_scale)
            self.log_scales[_scale_key(name)] = scale

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.log_scales[RESPONSES].device  # type: ignore[no-any-return]

    def scale(self, task: str = RESPONSES) -> Tensor:
        """Returns () float32, the factor of dot products in the softmax of a task."""
        largest = self.config.objective.max_scale
        return self.log_scales[_scale_key(task)].exp().clamp(max=largest)  # type: ignore[no-any-return]

    def autocast(self) -> torch.autocast:
        """Returns a context in which matrix products have the precision of the run."""
        precision = self.config.training.precision
        low = precision == "bf16" or (precision == "auto" and multiplies_in_bfloat16(self.device))
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)

    def collate(self, mixed: MixedBatch) -> CollatedBatch:
        """Does the work on a batch that needs no gradients; it may run in another thread."""
        batch, same, labels = mixed.batch, None, None
        total = len(batch.left_keys)
        own = batch.part.of(total)
        if batch.labels is not None:
            labels = torch.from_numpy(batch.labels[own])
        elif self.config.objective.mask_duplicates:
            same = torch.from_numpy(duplicates(batch.left_keys[own], batch.right_keys[own]))
        size = 2 * self.config.training.mini_batch_size or max(1, len(batch.sentences))
        chunks = tuple(
            self.encoder.collate(batch.sentences.part(start, start + size))
            for start in range(0, max(1, len(batch.sentences)), size)
        )
        rows = own.stop - own.start
        return CollatedBatch(mixed.task, chunks, rows, same, labels, total)

    def embed(self, chunk: Any) -> Tensor:
        """Returns (N, D) float32 unit rows, the embeddings of a part of a batch."""
        with self.autocast():
            return self.encoder(chunk)

    def loss(self, batch: CollatedBatch, embeddings: Tensor) -> StepLoss:
        """Returns the loss of a batch from its embeddings: left sides, right sides, others."""
        kind = OBJECTIVES[batch.task.objective]
        # a single operation, and so is its gradient
        left, right = torch.split(embeddings, [batch.rows, len(embeddings) - batch.rows])
        with self.autocast():
            return kind.loss(
                StepInputs(
                    left=left,
                    right=right,
                    labels=batch.labels,
                    same=batch.same,
                    scale=self.scale(batch.task.label) if kind.ranks else left.new_ones(()),
                    head=self._head(kind.name),
                    task=batch.task,
                    nested=self.config.training.nested_dims if kind.ranks else (),
                )
            )

    def _head(self, objective: str) -> layers.FeedForward | None:
        if objective not in self.heads:
            return None
        return cast("layers.FeedForward", self.heads[objective])

    def after_embedding(self, task: Task) -> list[nn.Parameter]:
        """Returns the parameters that the loss of a task trains besides the encoder's."""
        kind = OBJECTIVES[task.objective]
        head = self._head(kind.name)
        found = [] if head is None else list(head.parameters())
        if kind.ranks:
            found.append(self.log_scales[_scale_key(task.label)])
        return [parameter for parameter in found if parameter.requires_grad]


def _scale_key(task: str) -> str:
    """Returns the key of a task's scale, with a colon for names of `ParameterDict` methods."""
    return f"{task}:" if hasattr(nn.ParameterDict(), task) else task


class LiveEncoder:
    """Wraps a model in training as an encoder for evaluation."""

    def __init__(self, model: TrainableModel, features: TextFeatures) -> None:
        self.model, self.features = model, features

    def encode_response(self, sentences: Sequence[str], /) -> Embeddings:
        """Returns response embeddings v' = F(E(y)), (N, D) float32, unit rows."""
        return self.encode(sentences, response=True)

    @torch.no_grad()
    def encode(self, sentences: Sequence[str], /, *, response: bool = False) -> Embeddings:
        """Returns embeddings u, or v' = F(u) for responses, as (N, D) float32 unit rows."""
        model = self.model
        was_training = model.training
        model.eval()
        out = np.empty((len(sentences), model.encoder.dim), np.float32)
        for start in range(0, len(sentences), _CHUNK):
            ids = self.features(sentences[start : start + _CHUNK])
            collated = model.encoder.collate(ids).to(model.device)
            with model.autocast():
                embeddings = model.encoder(collated)
                if response:
                    embeddings = respond(model.heads[RESPONSES], embeddings)
            out[start : start + _CHUNK] = embeddings.float().cpu().numpy()
        model.train(was_training)
        return out


def phase_at(phases: Iterable[Phase], step: int) -> tuple[Phase, int]:
    """Returns the phase of `step` (from 0), and the number of the step within it.

    Raises:
        IndexError: the step is after the last phase.
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

    Adagrad keeps one accumulator per row, the sum of the mean squares of its gradients. This takes
    1 / dimension of the memory and memory traffic of the usual accumulator per value.
    """

    def __init__(self, table: layers.SparseTable, *, adagrad: bool) -> None:
        self.table = table
        self.pending: layers.RowGradient | None = None
        """The gradient of this step, between `collect` and `step`."""
        rows = len(table.weight) if adagrad else 0
        self.sums = torch.zeros(rows, device=table.weight.device)
        """(rows,) float32 for Adagrad, (0,) for SGD."""

    @torch.no_grad()
    def gradient_sum(self) -> Tensor:
        """Returns a () number that is finite if and only if the squares of the step's sums are."""
        assert self.pending is not None  # noqa: S101 -- `collect` came before
        by_owner = self.pending.by_owner
        if by_owner.device.type == "cpu" and by_owner.numel():
            # no sum of as many terms as there are ids exceeds this
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
        self, dense: list[nn.Parameter], tables: list[layers.SparseTable], config: OptimizerConfig
    ) -> None:
        self.dense: torch.optim.Optimizer = torch.optim.SGD(dense, lr=0.0)  # `step` sets the rate
        if config.dense == "adam":
            self.dense = torch.optim.Adam(dense, lr=0.0, betas=_ADAM_BETAS, fused=True)
        self.rows = [RowOptimizer(table, adagrad=config.table == "adagrad") for table in tables]

    def zero(self) -> None:
        """Clears the gradients of the last step."""
        for group in self.dense.param_groups:  # a third of the time of `zero_grad`
            for parameter in group["params"]:
                parameter.grad = None

    def collect(self) -> None:
        """Collects the gradients of table rows, after the backward pass."""
        for rows in self.rows:
            rows.pending = rows.table.take_gradient()

    def finite(self) -> Tensor:
        """Returns () bool, whether all gradients of this step are finite.

        Called once, after `collect` and before `step`.
        """
        sums = [rows.gradient_sum() for rows in self.rows]
        for group in self.dense.param_groups:
            found = [p.grad for p in group["params"] if p.grad is not None]
            if found and found[0].is_cuda:  # a few launches for all, instead of some for each
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
        """Returns every tensor of the optimisers' state, by a stable name."""
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
