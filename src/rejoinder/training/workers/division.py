"""The division of work among the workers of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.errors import InputError
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.config.tasks import Task
from rejoinder.training.data.batches import Part
from rejoinder.training.losses.joined import Joined
from rejoinder.training.workers.workers import NOBODY, Peers, Workers


@dataclass(frozen=True)
class Share:
    """What one worker contributes to the gradient of a step."""

    peers: Peers = NOBODY
    """The workers whose rows are one batch with its own."""
    of_all: float = 1.0
    """The weight of that batch among those of all workers."""
    joins: bool = False
    """Whether the rows of all peers are candidates of each other."""

    def joined(self, all_rows: int, more: int) -> Joined | None:
        """Returns the rows that a batch has at all peers, if their candidates are joined."""
        if not self.joins:
            return None
        parts = [Part(index, self.peers.part.count) for index in range(self.peers.part.count)]
        rows, others = (tuple(part.size(whole) for part in parts) for whole in (all_rows, more))
        return Joined(self.peers, self.peers.part.index, rows, others)


def share_of(config: RunConfig, workers: Workers) -> tuple[Share, tuple[Task, ...]]:
    """Returns what a worker contributes to each step, and the tasks that its batches come from.

    Raises:
        InputError: there are fewer workers than tasks that get workers of their own, or batches
            too small to be divided.
    """
    joined, tasks = config.objective.gather_across_workers, config.mixture
    if config.training.tasks_by == "step":
        _check_sizes(config, tasks, workers.count)
        return Share(workers, 1.0, joined and workers.count > 1), tasks
    sizes = workers_by_task([task.share for task in tasks], workers.count)
    owners = [task for task, size in zip(tasks, sizes, strict=True) for _ in range(size)]
    for task, size in zip(tasks, sizes, strict=True):
        _check_sizes(config, [task], size)
    peers = workers.groups(sizes)
    share = Share(peers, peers.part.count / workers.count, joined and peers.part.count > 1)
    return share, (owners[workers.rank],)


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
