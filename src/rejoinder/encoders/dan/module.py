"""The deep averaging network: rows summed, then a DNN (Yang et al. 2018, §2.3.1)."""

import torch
from torch import Tensor, nn

from rejoinder.encoders.dan.kind import COMBINERS
from rejoinder.encoders.nn.dense import FeedForward, unit_rows
from rejoinder.encoders.nn.sparse import BagIndex, SparseTable, index_bags
from rejoinder.encoders.settings import DanConfig
from rejoinder.text.ragged import Ragged


class DanEncoder(nn.Module):
    """Encodes a sentence as the sum of its rows, followed by dense layers.

    Shapes: N sentences, U touched rows, W row width, D embedding dimension.
    """

    def __init__(self, rows: int, config: DanConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        # a sum of n such rows over sqrt(n) has entries of variance 1 / W: a vector of length 1
        self.table = SparseTable(rows, config.width, config.width**-0.5, generator)
        self.dnn = FeedForward(
            config.width,
            config.layers,
            config.activation,
            residual=config.residual,
            generator=generator,
        )

    def tables(self) -> list[SparseTable]:
        """Returns the embedding table."""
        return [self.table]

    def collate(self, batch: Ragged) -> BagIndex:
        """Returns what `forward` reads; NumPy only, so that another thread can run it."""
        return index_bags(batch)

    def forward(self, batch: BagIndex, *, normalize: bool = True) -> Tensor:
        """(N, D) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        counts = batch.counts
        sums = self.table.sum_bags(batch)  # (N, W)
        power = COMBINERS[self.config.combiner]
        # multiplied: division takes much longer, and once more in the backward pass
        pooled = sums * counts.clamp(min=1).to(sums.dtype).pow(-power).unsqueeze(1)
        out = self.dnn(pooled)
        present = counts > 0
        return unit_rows(out, present) if normalize else out.float() * present.unsqueeze(1)
