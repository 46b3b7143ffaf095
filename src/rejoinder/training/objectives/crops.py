"""Two spans of one reply find each other (Izacard et al. 2022, Contriever, §3.1)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from rejoinder.training.data.pair_rows import Crops
from rejoinder.training.objectives.base import ObjectiveKind, PairsTask, mutual_loss


class CropsTask(PairsTask):
    """A random span of a reply finds another span of the same reply among those of the batch."""

    objective: Literal["crops"]
    min_words: int = Field(default=16, ge=2, le=1_000_000)
    """Replies with fewer words are left out."""
    least: float = Field(default=0.25, gt=0, le=1)
    """Smallest share of the words of the reply that a span has."""
    most: float = Field(default=0.5, gt=0, le=1)
    """Largest share of the words of the reply that a span has."""

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least is {self.least:g}; allowed: up to most = {self.most:g}")
        return self


CROPS = ObjectiveKind(
    name="crops",
    task=CropsTask,
    loss=mutual_loss,
    nests=True,
    rows=lambda task: Crops(task.min_words, task.least, task.most),
)
