"""Work on batches in a few threads, each of which computes on one core.

Letting the matrix product use all cores by itself is three times slower wherever something else
runs on the machine, the text side of the next batch included: its threads wait for each other.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

_Item = TypeVar("_Item")

BATCH_SIZE = 4_096
"""Sentences: larger batches are no faster, and their sums leave the caches."""
_SMALLEST = 512
"""Sentences below which a thread is not worth its start."""
_MOST_WORKERS = 16
"""Beyond so many, memory is what they wait for."""


def default_workers() -> int:
    """As many threads as the process may use cores, within reason.

    >>> 1 <= default_workers() <= 16
    True
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(allowed or 1, _MOST_WORKERS)


def each_batch(
    count: int, batch_size: int, workers: int, work: Callable[[slice], None], *, show: bool
) -> None:
    """Call `work` for consecutive slices that cover `range(count)`, and wait for all.

    Args:
        count: sentences.
        batch_size: the most in one slice.
        workers: threads; with 1, `work` is called here and computes with as many as it likes.
        work: called with one slice, by several threads at a time; an error of any is raised.
        show: draw a progress bar on stderr.
    """
    if workers > 1:
        batch_size = min(batch_size, max(-(-count // workers), _SMALLEST))
    slices = [slice(low, min(low + batch_size, count)) for low in range(0, count, batch_size)]
    if workers == 1 or len(slices) < 2:
        for part in _shown(slices, len(slices), show):
            work(part)
        return
    with _one_core_each(), ThreadPoolExecutor(workers, "rejoinder") as pool:
        for _ in _shown(pool.map(work, slices), len(slices), show):
            pass


_guard = Lock()
_limits: list[Any] = []
"""What gives matrix products their cores back, once for each call that is under way."""


@contextmanager
def _one_core_each() -> Iterator[None]:
    """While any caller is inside, matrix products use one core; after the last, what they had."""
    with _guard:
        # the first one in remembers how it was; those who come later hold it up
        _limits.append(_limits[-1] if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _guard:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    """Made once: it looks through all libraries of the process."""
    return ThreadpoolController()


def _shown(items: Iterable[_Item], total: int, show: bool) -> Iterator[_Item]:
    if not show:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, "encoding", total=total, console=Console(stderr=True))
