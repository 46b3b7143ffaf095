"""The bidirectional LSTM with max pooling: InferSent's encoder (Conneau et al. 2017, §3.2.2).

A forward and a backward LSTM give each word a state; the embedding is the maximum of each unit
over the words. Three things differ from the published code: padding never enters the maximum (in
its first version the zeros after shorter sentences did), sentences have no tokens for their
beginning and end, and word vectors are learned, not pre-trained.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders.nn.dense import PaddedGroup, SortedBatch, encode_parts, pad_groups
from rejoinder.encoders.nn.sparse import SparseTable
from rejoinder.encoders.nn.threads import OnDevice
from rejoinder.encoders.settings import BilstmConfig
from rejoinder.text.ragged import Ragged

_GROUP_WORDS = 4_096
"""Padded positions per pass; bounds the memory of the states."""
_GROUP_OVERHEAD = 64
"""Cost of a pass besides its sentences, in sentences: the matrix products of a time step are
inefficient for few sentences."""


@dataclass(frozen=True, slots=True)
class WordBatch(OnDevice):
    """Padded sentences over the U different words that they contain."""

    rows: Tensor
    """(U,) int64, the touched rows of the table, in ascending order."""
    padded: SortedBatch
    """Its parts are of type `PaddedGroup`, with indices into `rows` as ids."""


class BilstmEncoder(nn.Module):
    """Encodes a sentence as the maximum over the states of a forward and a backward LSTM.

    Shapes: N sentences, G sentences of a group, T positions, U touched rows, W row width, H units
    per direction, D embedding dimension.
    """

    def __init__(self, rows: int, config: BilstmConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.table = SparseTable(rows, config.width, config.width**-0.5, generator)
        # One module per direction: oneDNN's LSTM takes padded batches, and a backward one that
        # reads reversed sentences needs no packing, which costs several times as much on the CPU.
        self.forwards = nn.LSTM(config.width, config.hidden)
        self.backwards = nn.LSTM(config.width, config.hidden)
        self.projection = nn.Linear(2 * config.hidden, config.dim) if config.projected else None
        self._draw(generator)

    def tables(self) -> list[SparseTable]:
        """Returns the embedding table."""
        return [self.table]

    def collate(self, batch: Ragged) -> WordBatch:
        """Returns what `forward` reads; NumPy only, so that another thread can run it."""
        batch = batch.first(self.config.max_tokens)
        rows, local = np.unique(batch.ids, return_inverse=True)
        padded = pad_groups(
            Ragged(local.astype(np.int32), batch.offsets), _GROUP_WORDS, _GROUP_OVERHEAD
        )
        return WordBatch(torch.from_numpy(rows.astype(np.int64)), padded)

    def forward(self, batch: WordBatch, *, normalize: bool = True) -> Tensor:
        """(N, D) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        values = self.table.gather(batch.rows)  # (U, W)
        encode = partial(self._encode, values)
        return encode_parts(batch.padded, encode, self.dim, normalize=normalize)

    def encode_group(self, group: PaddedGroup) -> Tensor:
        """Returns the embeddings of a group whose ids are rows of the table, (G, D)."""
        return self._encode(self.table.weight, group)

    def _encode(self, values: Tensor, group: PaddedGroup) -> Tensor:
        """(G, D), not normalised."""
        # positions come first: an LSTM steps through them
        forth = _states(self.forwards, F.embedding(group.ids.T, values))  # (T, G, H)
        back = _states(self.backwards, F.embedding(_reversed(group).T, values))
        # the maximum does not depend on the order of the backward states
        padding = ~group.present.T.unsqueeze(2)  # (T, G, 1)
        pooled = torch.cat([_largest(forth, padding), _largest(back, padding)], dim=1)  # (G, 2H)
        return pooled if self.projection is None else self.projection(pooled)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        """Draws all weights: PyTorch's rule for LSTMs, as published, and Glorot's for the map."""
        for lstm in (self.forwards, self.backwards):
            for parameter in lstm.parameters():
                bound = self.config.hidden**-0.5
                parameter.uniform_(-bound, bound, generator=generator)
        if self.projection is not None:
            bound = (6.0 / sum(self.projection.weight.shape)) ** 0.5
            self.projection.weight.uniform_(-bound, bound, generator=generator)
            self.projection.bias.zero_()


def _states(lstm: nn.LSTM, words: Tensor) -> Tensor:
    """Returns (T, G, H), the states of an LSTM over (T, G, W)."""
    device = words.device.type
    if device == "cpu" and torch.is_autocast_enabled(device) and not _low_lstms():
        with torch.autocast(device, enabled=False):
            return lstm(words.float())[0]  # type: ignore[no-any-return]
    return lstm(words)[0]  # type: ignore[no-any-return]


def _low_lstms() -> bool:
    """Whether oneDNN has LSTMs in bfloat16 for this processor; they need AVX-512."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _reversed(group: PaddedGroup) -> Tensor:
    """Returns (G, T) int64, the ids of each sentence in reverse order, followed by padding."""
    lengths = group.present.sum(dim=1, keepdim=True)
    positions = lengths - 1 - torch.arange(group.ids.shape[1], device=group.ids.device)
    return group.ids.gather(1, positions.clamp(min=0))


def _largest(states: Tensor, padding: Tensor) -> Tensor:
    """Returns (G, H), the maximum of `states` (T, G, H) over positions that are not padding."""
    return states.masked_fill(padding, -torch.inf).max(dim=0).values
