"""The division of work among the workers of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.errors import InputError
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.config.tasks import Task
from rejoinder.training.data.batches import WHOLE, Part
from rejoinder.training.workers.workers import Workers


@dataclass(frozen=True)
class Share:
    """What one worker contributes to the gradient of a step."""

    part: Part = WHOLE
    """Its part of a batch that some workers, or all, divide."""
    of_all: float = 1.0
    """The weight of that batch among those of all workers."""


def share_of(config: RunConfig, workers: Workers) -> tuple[Share, tuple[Task, ...]]:
    """Returns what a worker contributes to each step, and the tasks that its batches come from.

    Raises:
        InputError: there are fewer workers than tasks that need separate workers, or batches
            too small to be divided.
    """
    tasks = config.mixture
    if config.training.tasks_by == "step":
        _check_sizes(config, tasks, workers.count)
        return Share(workers.part), tasks
    sizes = workers_by_task([task.share for task in tasks], workers.count)
    for task, size in zip(tasks, sizes, strict=True):
        _check_sizes(config, [task], size)
    task, index, size = [
        (task, index, size)
        for task, size in zip(tasks, sizes, strict=True)
        for index in range(size)
    ][workers.rank]
    return Share(Part(index, size), size / workers.count), (task,)


def workers_by_task(shares: Sequence[float], count: int) -> list[int]:
    """Returns the number of workers of each task: in proportion to its share, and at least one.

    >>> workers_by_task([0.95, 0.05], 40), workers_by_task([0.95, 0.05], 3)
    ([38, 2], [2, 1])

    Raises:
        InputError: there are fewer workers than tasks.
    """
    if count < len(shares):
        raise InputError(
            f'training.tasks_by is "worker", and there are {len(shares)} tasks for {count} '
            f'worker{"" if count == 1 else "s"}; start {len(shares)} or more, or set it to "step".'
        )
    sizes = [1] * len(shares)
    for _ in range(count - len(shares)):  # the next one goes where most is missing
        missing = [share * count - size for share, size in zip(shares, sizes, strict=True)]
        sizes[missing.index(max(missing))] += 1
    return sizes


def _check_sizes(config: RunConfig, tasks: Sequence[Task], workers: int) -> None:
    for task in tasks:
        for size in [task.batch_size] if task.batch_size else [p.batch_size for p in config.phases]:
            Part(count=workers).check(size, f"task {task.label}")
