"""All that learns in a run, in one module: encoder, heads, scales."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.encoders.bilstm import BilstmEncoder
from rejoinder.encoders.dan import DanEncoder
from rejoinder.encoders.heads import FeedForward, unit_rows
from rejoinder.encoders.settings import BilstmConfig, DanConfig
from rejoinder.encoders.sparse import SparseTable
from rejoinder.encoders.transformer import TransformerEncoder
from rejoinder.objectives.entailment import EntailmentHead, classification, entailment_ranking
from rejoinder.objectives.in_batch import RankingLoss, duplicates
from rejoinder.objectives.paraphrase import paraphrase
from rejoinder.objectives.response_selection import response_selection
from rejoinder.protocols import Embeddings
from rejoinder.text.features import TextFeatures
from rejoinder.text.ragged import Ragged
from rejoinder.training.mixture import MixedBatch
from rejoinder.training.settings import RunConfig
from rejoinder.training.task_settings import (
    EntailmentRankingTask,
    EntailmentTask,
    ResponsesTask,
    TaskConfig,
)

_CHUNK = 4_096


class TrainableEncoder(Protocol):
    """The extension point for encoders: an `nn.Module` with these three."""

    dim: int

    def prepare(self, batch: Ragged) -> Any:
        """What `forward` reads, made without gradients, in another thread."""
        ...

    def __call__(self, batch: Any) -> Tensor:
        """(N, dim) float32, unit rows; zero rows for sentences without ids."""
        ...

    def tables(self) -> list[SparseTable]:
        """Tables whose touched rows the optimiser moves one by one."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """B rows as an encoder and a loss read them."""

    task: TaskConfig
    sentences: Any
    """What the encoder made of the sentences: left sides, right sides, more candidates."""
    rows: int
    same: Tensor | None
    """(2, M) int64, see `objectives.in_batch.duplicates`."""
    labels: Tensor | None

    def to(self, device: torch.device) -> "PreparedBatch":
        """The same batch on `device`."""
        same, labels = (
            None if tensor is None else tensor.to(device, non_blocking=True)
            for tensor in (self.same, self.labels)
        )
        return PreparedBatch(self.task, self.sentences.to(device), self.rows, same, labels)


class TrainableModel(nn.Module):
    """One encoder for all tasks; a head on the response side (figure 3), one for inference."""

    def __init__(self, rows: int, config: RunConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = config.objective
        self.precision = config.training.precision
        self.encoder = cast("TrainableEncoder", _encoder(rows, config, generator))
        if config.training.rank_init:
            for table in self.encoder.tables():
                table.weigh_by_rank(config.training.rank_init)
        self.head = FeedForward(
            self.encoder.dim,
            config.head.layers,
            config.head.activation,
            residual=config.head.residual,
            generator=generator,
        )
        if "responses" not in config.objectives:
            self.head.requires_grad_(False)
        self.entailment = (
            EntailmentHead(self.encoder.dim, config.entailment, generator)
            if "entailment" in config.objectives
            else None
        )
        start = math.log(config.objective.scale)
        self.log_scales = nn.ParameterDict(
            {
                _scale_key(name): nn.Parameter(
                    torch.tensor(start), requires_grad=config.objective.learn_scale
                )
                for name in sorted({"responses"} | _ranking_tasks(config))
            }
        )

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        device: torch.device = self.log_scales["responses"].device
        return device

    def scale(self, task: str = "responses") -> Tensor:
        """() float32, what dot products are multiplied by."""
        scale: Tensor = self.log_scales[_scale_key(task)].exp().clamp(max=self.settings.max_scale)
        return scale

    def autocast(self) -> torch.autocast:
        """Matrix products in the precision of the run."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def prepare(self, mixed: MixedBatch) -> PreparedBatch:
        """All that can be done for a batch in another thread, without gradients."""
        batch, same, labels = mixed.batch, None, None
        if batch.labels is not None:
            labels = torch.from_numpy(batch.labels)
        elif self.settings.mask_duplicates:
            same = torch.from_numpy(duplicates(batch.left_keys, batch.right_keys))
        sentences = self.encoder.prepare(batch.sentences)
        return PreparedBatch(mixed.task, sentences, len(batch.left_keys), same, labels)

    def loss(self, batch: PreparedBatch) -> RankingLoss:
        """The loss of a batch that was moved to the device."""
        with self.autocast():
            embeddings = self.encoder(batch.sentences)
            left, right = embeddings[: batch.rows], embeddings[batch.rows :]
            return self._task_loss(left, right, batch)

    def _task_loss(self, left: Tensor, right: Tensor, batch: PreparedBatch) -> RankingLoss:
        same, task = batch.same, batch.task
        if isinstance(task, ResponsesTask):
            responses, both = self.respond(right), self.settings.symmetric
            return response_selection(left, responses, self.scale(), same=same, symmetric=both)
        if isinstance(task, EntailmentTask):
            head = cast("EntailmentHead", self.entailment)
            return classification(head(left, right), cast("Tensor", batch.labels))
        scale = self.scale(task.label)
        if isinstance(task, EntailmentRankingTask):
            return entailment_ranking(left, right, scale, same=same, symmetric=task.symmetric)
        return paraphrase(left, right, scale, same=same)

    def respond(self, embeddings: Tensor) -> Tensor:
        """(N, D) v' = F(v), unit rows; zero rows stay zero."""
        return unit_rows(self.head(embeddings), embeddings.detach().any(dim=1))


def _encoder(rows: int, config: RunConfig, generator: torch.Generator) -> nn.Module:
    """The encoder that the config names, its weights drawn from `generator`."""
    if isinstance(config.encoder, DanConfig):
        return DanEncoder(rows, config.encoder, generator)
    if isinstance(config.encoder, BilstmConfig):
        return BilstmEncoder(rows, config.encoder, generator)
    return TransformerEncoder(rows, config.encoder, generator)


def _scale_key(task: str) -> str:
    """The key of a task's scale; a name that the dictionary has for itself gets another."""
    return f"{task}:" if hasattr(nn.ParameterDict(), task) else task


def _ranking_tasks(config: RunConfig) -> set[str]:
    return {task.label for task in config.mixture if task.objective != "entailment"}


class LiveEncoder:
    """A model in training as something that encodes: what evaluation is handed."""

    def __init__(self, model: TrainableModel, features: TextFeatures) -> None:
        self.model, self.features = model, features

    def encode(self, sentences: Sequence[str], /) -> Embeddings:
        """(N, D) float32, unit rows."""
        return self._encode(sentences, response=False)

    def encode_response(self, sentences: Sequence[str], /) -> Embeddings:
        """(N, D) float32, unit rows: v' = F(E(y))."""
        return self._encode(sentences, response=True)

    @torch.no_grad()
    def _encode(self, sentences: Sequence[str], *, response: bool) -> Embeddings:
        model = self.model
        was_training = model.training
        model.eval()
        out = np.empty((len(sentences), model.encoder.dim), np.float32)
        for start in range(0, len(sentences), _CHUNK):
            ids = self.features(sentences[start : start + _CHUNK])
            prepared = model.encoder.prepare(ids).to(model.device)
            with model.autocast():
                embeddings = model.encoder(prepared)
                if response:
                    embeddings = model.respond(embeddings)
            out[start : start + _CHUNK] = embeddings.float().cpu().numpy()
        model.train(was_training)
        return out
