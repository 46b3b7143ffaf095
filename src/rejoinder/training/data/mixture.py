"""Mixes tasks: draws the task and stream of a step from the seed and the number of the step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose

import numpy as np

from rejoinder.training.config.tasks import Task
from rejoinder.training.data.batches import Batch, Position, Stream

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
        total = sum(shares)  # less than 1 where other workers have the other tasks
        self._bounds = np.cumsum(shares)[:-1] / (
            1.0 if isclose(total, 1.0, abs_tol=1e-6) else total
        )
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
