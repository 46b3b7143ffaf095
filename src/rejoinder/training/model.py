"""All that learns in a run, in one module: encoder, response head, scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.encoders.bilstm import BilstmConfig, BilstmEncoder
from rejoinder.encoders.dan import DanConfig, DanEncoder
from rejoinder.encoders.heads import FeedForward, unit_rows
from rejoinder.encoders.sparse import SparseTable
from rejoinder.encoders.transformer import TransformerEncoder
from rejoinder.objectives.response_selection import ResponseLoss, duplicates, response_selection
from rejoinder.protocols import Embeddings
from rejoinder.text.features import TextFeatures
from rejoinder.text.ragged import Ragged
from rejoinder.training.settings import RunConfig
from rejoinder.training.stream import PairBatch

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
    """B pairs as an encoder and the loss read them."""

    sentences: Any
    """What the encoder made of the 2B sentences, inputs first."""
    pairs: int
    same: Tensor | None
    """(2, M) int64, see `objectives.response_selection.duplicates`."""

    def to(self, device: torch.device) -> "PreparedBatch":
        """The same batch on `device`."""
        same = None if self.same is None else self.same.to(device, non_blocking=True)
        return PreparedBatch(self.sentences.to(device), self.pairs, same)


class ResponseModel(nn.Module):
    """One encoder for both sides, a feed-forward head on the response side (figure 3)."""

    def __init__(self, rows: int, config: RunConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = config.objective
        self.precision = config.training.precision
        self.encoder = cast("TrainableEncoder", _encoder(rows, config, generator))
        self.head = FeedForward(
            self.encoder.dim,
            config.head.layers,
            config.head.activation,
            residual=config.head.residual,
            generator=generator,
        )
        self.log_scale = nn.Parameter(
            torch.tensor(math.log(config.objective.scale)),
            requires_grad=config.objective.learn_scale,
        )

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.log_scale.device

    @property
    def scale(self) -> Tensor:
        """() float32, what u·v' is multiplied by."""
        return self.log_scale.exp().clamp(max=self.settings.max_scale)

    def autocast(self) -> torch.autocast:
        """Matrix products in the precision of the run."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def prepare(self, batch: PairBatch) -> PreparedBatch:
        """All that can be done for a batch in another thread, without gradients."""
        same = None
        if self.settings.mask_duplicates:
            same = torch.from_numpy(duplicates(batch.input_keys, batch.response_keys))
        sentences = self.encoder.prepare(batch.sentences)
        return PreparedBatch(sentences, len(batch.input_keys), same)

    def loss(self, batch: PreparedBatch) -> ResponseLoss:
        """The loss of a batch that was moved to the device."""
        with self.autocast():
            embeddings = self.encoder(batch.sentences)  # (2B, D)
            responses = self.respond(embeddings[batch.pairs :])
            return response_selection(
                embeddings[: batch.pairs],
                responses,
                self.scale,
                same=batch.same,
                symmetric=self.settings.symmetric,
            )

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


class LiveEncoder:
    """A model in training as something that encodes: what evaluation is handed."""

    def __init__(self, model: ResponseModel, features: TextFeatures) -> None:
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
