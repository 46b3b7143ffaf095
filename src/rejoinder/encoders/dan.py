"""The deep averaging network: rows summed, then a DNN (Yang et al. 2018, §2.3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rejoinder.encoders.heads import FeedForward, unit_rows
from rejoinder.encoders.sparse import BagIndex, SparseTable, index_bags, sum_bags
from rejoinder.errors import ConfigError, nearest
from rejoinder.text.ragged import Ragged

COMBINERS = {"sqrtn": 0.5, "mean": 1.0, "sum": 0.0}
"""The power of n, the number of rows summed, that the sum is divided by."""


@dataclass(frozen=True)
class DanConfig:
    """Sizes of a DAN: by default the paper's (§4.1); where it is silent, the choice is ours."""

    kind: str = "dan"
    width: int = 300
    """Width of the rows of words and bigrams."""
    layers: tuple[int, ...] = (300, 300, 500)
    """Units of the DNN; the last is the embedding. Empty: the pooled sum is the embedding."""
    activation: str = "tanh"
    """Between layers; none after the last."""
    residual: bool = False
    """Add the pooled sum, through a linear map where the widths differ, to the DNN's output."""
    combiner: str = "sqrtn"
    """`sqrtn`, `mean` or `sum`."""

    def __post_init__(self) -> None:
        if self.combiner not in COMBINERS:
            raise ConfigError(
                f"encoder.combiner {self.combiner!r}: {nearest(self.combiner, COMBINERS)}."
            )
        if self.width < 1 or any(units < 1 for units in self.layers):
            raise ConfigError(
                f"encoder.width {self.width} and layers {list(self.layers)} must be positive."
            )

    @property
    def dim(self) -> int:
        """Width of the embedding."""
        return self.layers[-1] if self.layers else self.width


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
