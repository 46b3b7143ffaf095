"""The bidirectional LSTM with max pooling: InferSent's encoder (Conneau et al. 2017, §3.2.2).

Each word's state is what a forward and a backward LSTM have read up to it; the embedding takes the
largest value of each unit over the words. Three things differ from the published code: the maximum
is over words alone, where its first version also let in the zeros behind shorter sentences of a
batch; no marks of beginning and end are read; rows of words are learned, not pre-trained.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders.padding import PaddedBatch, PaddedGroup, encode_groups, pad_groups
from rejoinder.encoders.settings import BilstmConfig
from rejoinder.encoders.sparse import SparseTable
from rejoinder.text.ragged import Ragged

_GROUP_WORDS = 4_096
"""Padded positions of one pass: small, so that a group's lengths, and with them padding, vary
little; not too small, since a step over one position is a product with a row a sentence."""


@dataclass(frozen=True, slots=True)
class WordBatch:
    """Sentences in groups of like lengths, over the U different words that they hold."""

    rows: Tensor
    """(U,) int64, the touched rows of the table, ascending."""
    padded: PaddedBatch
    """Its ids are places in `rows`."""

    def to(self, device: torch.device) -> "WordBatch":
        """The same batch on `device`."""
        return WordBatch(self.rows.to(device, non_blocking=True), self.padded.to(device))


class BilstmEncoder(nn.Module):
    """Sentences as words in their order to unit vectors.

    Shapes: N sentences, G of a group, T positions, U touched rows, W row width, H units a
    direction, D embedding width.
    """

    def __init__(self, rows: int, config: BilstmConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.table = SparseTable(rows, config.width, config.width**-0.5, generator)
        # one module a direction: oneDNN's LSTM takes padded batches, and a backward one that is
        # handed reversed sentences needs no packing, which on the CPU costs several times more
        self.forwards = nn.LSTM(config.width, config.hidden)
        self.backwards = nn.LSTM(config.width, config.hidden)
        self.projection = nn.Linear(2 * config.hidden, config.dim) if config.projected else None
        self._draw(generator)

    def tables(self) -> list[SparseTable]:
        """The tables whose rows the optimiser updates one by one."""
        return [self.table]

    def prepare(self, batch: Ragged) -> WordBatch:
        """What `forward` reads; NumPy only, so that another thread can do it."""
        batch = batch.first(self.config.max_tokens)
        rows, local = np.unique(batch.ids, return_inverse=True)
        padded = pad_groups(Ragged(local.astype(np.int32), batch.offsets), _GROUP_WORDS)
        return WordBatch(torch.from_numpy(rows.astype(np.int64)), padded)

    def forward(self, batch: WordBatch, *, normalize: bool = True) -> Tensor:
        """(N, D) float32, unit rows unless not wanted; zero rows for sentences without ids."""
        values = self.table.gather(batch.rows)  # (U, W)
        return encode_groups(
            batch.padded,
            lambda group: self._encode(group, values),
            self.dim,
            values.device,
            normalize=normalize,
        )

    def _encode(self, group: PaddedGroup, values: Tensor) -> Tensor:
        """(G, D), not yet of unit length."""
        # positions first: what an LSTM steps through
        forth, _ = self.forwards(F.embedding(group.ids.T, values))  # (T, G, H)
        back, _ = self.backwards(F.embedding(_reversed(group).T, values))
        # states of either order are the same set, so that the backward ones need no turning
        padding = ~group.present.T.unsqueeze(2)  # (T, G, 1)
        pooled = torch.cat([_largest(forth, padding), _largest(back, padding)], dim=1)  # (G, 2H)
        return pooled if self.projection is None else self.projection(pooled)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        """All weights from one generator: PyTorch's rule for an LSTM, as published; Glorot."""
        for lstm in (self.forwards, self.backwards):
            for parameter in lstm.parameters():
                bound = self.config.hidden**-0.5
                parameter.uniform_(-bound, bound, generator=generator)
        if self.projection is not None:
            bound = (6.0 / sum(self.projection.weight.shape)) ** 0.5
            self.projection.weight.uniform_(-bound, bound, generator=generator)
            self.projection.bias.zero_()


def _reversed(group: PaddedGroup) -> Tensor:
    """(G, T) int64, each sentence's ids from its last to its first, padding behind them."""
    lengths = group.present.sum(dim=1, keepdim=True)
    places = lengths - 1 - torch.arange(group.ids.shape[1], device=group.ids.device)
    return group.ids.gather(1, places.clamp(min=0))


def _largest(states: Tensor, padding: Tensor) -> Tensor:
    """(G, H), the largest of `states` (T, G, H) over positions that are not padding."""
    return states.masked_fill(padding, -torch.inf).max(dim=0).values
