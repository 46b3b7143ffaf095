"""Mixes the pairs and labelled files of a run.

The task and stream of a step are drawn from the seed and the number of the step.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rejoinder.errors import TrainingError
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import Data, Prepared, labelled_facts
from rejoinder.training.data.stream import (
    Batch,
    IdCache,
    LabelledStream,
    PairStream,
    Part,
    Position,
    Stream,
    text_key,
)
from rejoinder.training.objectives import OBJECTIVES, Task

_IDS = "ids"
"""Folder of the cache of token ids in that of the run."""
_DRAW = 0x3141
"""Keeps the draws of streams apart from other draws of the same seed."""


@dataclass(frozen=True, slots=True)
class MixedBatch:
    """A batch with the task and the stream that it comes from."""

    task: Task
    stream: str
    batch: Batch


class Mixture:
    """Batches of several streams; each step takes one from a single stream.

    The state of a mixture is the position of each stream: the draw follows from the step alone.
    """

    def __init__(self, tasks: Sequence[tuple[Task, Sequence[Stream]]], seed: int) -> None:
        """Divides the share of each task among its streams in proportion to (rows)^power."""
        self._streams: list[tuple[Task, Stream]] = []
        shares: list[float] = []
        for task, streams in tasks:
            parts = np.array([stream.rows for stream in streams], np.float64) ** task.power
            shares += (task.share * parts / parts.sum()).tolist()
            self._streams += [(task, stream) for stream in streams]
        self.shares = {
            f"{task.label}/{stream.name}": share
            for (task, stream), share in zip(self._streams, shares, strict=True)
        }
        """Share of the steps of each stream, by its name."""
        self._bounds = np.cumsum(shares)[:-1]
        self._seed = seed

    def drawn(self, step: int) -> int:
        """Returns the index of the stream that `step` (from 0) belongs to."""
        if not len(self._bounds):
            return 0
        value = np.random.default_rng([self._seed, _DRAW, step]).random()
        return int(np.searchsorted(self._bounds, value, side="right"))

    def batches(
        self,
        step: int,
        positions: Mapping[str, Position],
        size: Callable[[int, Task], int],
    ) -> Iterator[MixedBatch]:
        """Yields the batches of all steps from `step` (from 0) on.

        `positions` are those of the streams by name; absent streams are at their start. `size`
        returns the batch size of a task at a step.
        """
        now = step

        def opened(name: str, task: Task, stream: Stream) -> Iterator[Batch]:
            start = positions.get(name, Position())
            return stream.batches(start, lambda: size(now, task))

        batches = [
            opened(name, *stream) for name, stream in zip(self.shares, self._streams, strict=True)
        ]
        names = list(self.shares)
        while True:
            index = self.drawn(now)
            yield MixedBatch(self._streams[index][0], names[index], next(batches[index]))
            now += 1


def open_cache(
    run: Path, config: RunConfig, data: Data, prepared: Prepared, workers: int
) -> IdCache | None:
    """Returns the cache of token ids of one of so many workers; None if the config has none."""
    most = config.training.id_cache_gb
    if not most or not config.reads_pairs:
        remove_cache(run)
        return None
    text = text_key(run / "vocabulary", prepared.features.config())
    return IdCache(run / _IDS, data.needed_pairs(), text, most * 1e9, workers)


def remove_cache(run: Path) -> None:
    """Removes the cache of token ids of a run."""
    shutil.rmtree(run / _IDS, ignore_errors=True)


def open_mixture(
    config: RunConfig, data: Data, prepared: Prepared, cache: IdCache | None, part: Part
) -> Mixture:
    """Opens the streams of all tasks, of which a worker takes a `part` of each batch.

    Raises:
        TrainingError: a labelled file is not the one that the run began with.
        InputError: a labelled file has too few rows for so many workers.
    """
    seed = config.training.seed
    labelled = data.labelled(config)
    facts = labelled_facts(labelled)
    for name in {**facts, **prepared.labelled}:
        if facts.get(name) != prepared.labelled.get(name):
            raise TrainingError(
                f"{name} is not the file that the run began with; name the folder of that file "
                "with `data`."
            )
    tasks = []
    for task, files in labelled:
        for file in files:
            part.check(len(file.examples), f"{task.label} from {file.name}")
        dropout = task.word_dropout
        if dropout is None:
            dropout = config.objective.word_dropout
        streams: list[Stream] = [
            LabelledStream(file, prepared.features, seed=seed, word_dropout=dropout, part=part)
            for file in files
        ]
        kind = OBJECTIVES[task.objective]
        if kind.read is None:
            streams = [
                PairStream(
                    data.needed_pairs(),
                    prepared.features,
                    window_pairs=config.training.window_pairs,
                    seed=seed,
                    excluded=prepared.excluded,
                    word_dropout=dropout,
                    cache=cache,
                    part=part,
                )
            ]
        tasks.append((task, streams))
    return Mixture(tasks, seed)
