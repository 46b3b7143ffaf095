"""Which task a step belongs to: fixed shares, drawn from the seed and the number of the step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.training.batches import Batch, Position, Stream
from rejoinder.training.tasks.base import Task

_DRAW = 0x3141


@dataclass(frozen=True)
class TaskStreams:
    """A task and its data."""

    task: Task
    streams: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class MixedBatch:
    """A batch, and whose it is."""

    task: Task
    stream: str
    batch: Batch


class Mixture:
    """Batches of several streams, a stream a step.

    Its state is a position a stream: what a step draws follows from the step alone.
    """

    def __init__(self, tasks: Sequence[TaskStreams], seed: int) -> None:
        """A mixture of tasks; the share of one is parted by (rows)^power among its streams."""
        self._streams: list[tuple[Task, Stream]] = []
        shares: list[float] = []
        for entry in tasks:
            sizes = np.array([stream.rows for stream in entry.streams], np.float64)
            parts = sizes**entry.task.power
            shares += (entry.task.share * parts / parts.sum()).tolist()
            self._streams += [(entry.task, stream) for stream in entry.streams]
        self.shares = {
            f"{task.label}/{stream.name}": share
            for (task, stream), share in zip(self._streams, shares, strict=True)
        }
        """Share of the steps of each stream."""
        self._bounds = np.cumsum(shares)[:-1]
        self._seed = seed

    def drawn(self, step: int) -> int:
        """The place of the stream that `step` (from 0) belongs to."""
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
        """The batches of all steps from `step` on.

        Args:
            step: the first one, from 0.
            positions: where streams stand, by name; those that are absent are at their beginning.
            size: the batch size of a task at a step.
        """
        names = list(self.shares)
        opened: dict[int, Iterator[Batch]] = {}
        now = step

        def open_stream(place: int) -> Iterator[Batch]:
            task, stream = self._streams[place]
            start = positions.get(names[place], Position())
            return stream.batches(start, lambda _number: size(now, task))

        while True:
            place = self.drawn(now)
            if place not in opened:
                opened[place] = open_stream(place)
            yield MixedBatch(self._streams[place][0], names[place], next(opened[place]))
            now += 1
