"""A small encoder kind, as a user of the package writes one; shown in docs/extend/encoder.md."""

from typing import Literal

import torch
from pydantic import Field

from rejoinder.encoders import EncoderKind
from rejoinder.encoders.nn.layers import SparseTable, index_bags, unit_rows
from rejoinder.encoders.settings import EncoderSettings, Units


class GatedConfig(EncoderSettings):
    """A sum of word vectors, each unit multiplied by a learned gate."""

    kind: Literal["gated"] = "gated"
    dim: Units = Field(default=16, description="Embedding dimension.")


class GatedEncoder(torch.nn.Module):
    def __init__(self, rows, config, generator):
        super().__init__()
        self.dim = config.dim
        self.table = SparseTable(rows, config.dim, config.dim**-0.5, generator)
        gates = torch.empty(config.dim).uniform_(0.5, 1.5, generator=generator)
        self.gates = torch.nn.Parameter(gates)

    def tables(self):
        return [self.table]

    def collate(self, batch):
        return index_bags(batch)

    def forward(self, batch, *, normalize=True):
        sums = self.table.sum_bags(batch) * self.gates
        return unit_rows(sums, batch.counts > 0) if normalize else sums.float()


GATED = EncoderKind(
    name="gated",
    text="words",
    config=GatedConfig,
    module=GatedEncoder,
    table="table.weight",
)
