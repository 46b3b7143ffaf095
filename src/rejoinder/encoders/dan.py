"""The deep averaging network: rows summed, then a DNN (Yang et al. 2018, §2.3.1)."""

import torch
from torch import Tensor, nn

from rejoinder.encoders.heads import FeedForward, unit_rows
from rejoinder.encoders.settings import DanConfig
from rejoinder.encoders.sparse import BagIndex, SparseTable, index_bags, sum_bags
from rejoinder.text.ragged import Ragged

COMBINERS = {"sqrtn": 0.5, "mean": 1.0, "sum": 0.0}
"""The power of n, the number of rows summed, that the sum is divided by."""


class DanEncoder(nn.Module):
    """Sentences as bags of rows to unit vectors.

    Shapes: N sentences, U touched rows, W row width, D embedding width.
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
        """The tables whose rows the optimiser updates one by one."""
        return [self.table]

    def prepare(self, batch: Ragged) -> BagIndex:
        """What `forward` reads; NumPy only, so that another thread can do it."""
        return index_bags(batch)

    def forward(self, batch: BagIndex) -> Tensor:
        """(N, D) float32, unit rows; zero rows for sentences without ids."""
        counts = batch.counts
        sums = sum_bags(self.table.gather(batch.rows), batch)  # (N, W)
        power = COMBINERS[self.config.combiner]
        pooled = sums / counts.clamp(min=1).to(sums.dtype).pow(power).unsqueeze(1)
        return unit_rows(self.dnn(pooled), counts > 0)
