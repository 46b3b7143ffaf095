"""The sources of the pairs that a run is trained on: subreddits, corpora."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from rejoinder.corpus.shards import Pairs
from rejoinder.errors import InputError
from rejoinder.training.config.settings import TrainingConfig

_LISTED = 100
"""Number of sources that a message lists."""


@dataclass(frozen=True)
class Selection:
    """The sources of a folder of pairs that are trained on, and those that are left out."""

    chosen: Mapping[str, int]
    """Number of pairs in the train split, by source."""
    left_out: Mapping[str, int]

    def keeps(self, sources: pl.Series) -> pl.Series:
        """Returns for each source whether its pairs are kept."""
        return sources.is_in(list(self.chosen))


def select_sources(pairs: Pairs, training: TrainingConfig) -> Selection:
    """Returns the sources that `training.sources` and `training.exclude_sources` choose.

    Raises:
        InputError: a name is no source of the pairs, or no pair of the train split is left.
    """
    present = {name: splits.get("train", 0) for name, splits in pairs.manifest.sources.items()}
    for key in ("sources", "exclude_sources"):
        unknown = [name for name in getattr(training, key) if name not in present]
        if unknown:
            raise InputError(
                f"training.{key}: {', '.join(map(repr, unknown))} is no source of {pairs.folder}; "
                f"its sources, with their pairs in the train split, are {_listed(present)}."
            )
    chosen = {
        name: count
        for name, count in present.items()
        if name not in training.exclude_sources
        and (not training.sources or name in training.sources)
    }
    chooses = training.sources or training.exclude_sources
    if chooses and not sum(chosen.values()):
        raise InputError(
            f"training.sources and training.exclude_sources leave no pair of the train split of "
            f"{pairs.folder}; its sources, with their pairs there, are {_listed(present)}."
        )
    left_out = {name: count for name, count in present.items() if name not in chosen}
    return Selection(chosen, left_out)


def _listed(present: Mapping[str, int]) -> str:
    largest = sorted(present.items(), key=lambda item: (-item[1], item[0]))
    more = f", and {len(largest) - _LISTED:,} smaller ones" if len(largest) > _LISTED else ""
    return ", ".join(f"{name} ({count:,})" for name, count in largest[:_LISTED]) + more
