"""Runs work on batches in a few threads, each of which computes on one core.

A matrix product that uses all cores by itself is three times slower as soon as anything else runs
on the machine, such as the text processing of the next batch, because its threads wait for each
other.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

_Item = TypeVar("_Item")

BATCH_SIZE = 4_096
"""Default number of sentences per batch. Larger ones are no faster: sums leave the caches."""
_MIN_SLICE = 512
"""Number of sentences below which starting another thread does not pay."""


def each_batch(
    count: int, batch_size: int, workers: int, work: Callable[[slice], None], *, show: bool
) -> None:
    """Calls `work` for consecutive slices that cover `range(count)`, and waits for all calls.

    With several `workers`, as many threads call `work` at a time, each on one core; with 1 it is
    called in the calling thread and may use any number of cores. Its errors are raised here.
    `show` draws a progress bar on standard error.
    """
    if workers > 1:
        batch_size = min(batch_size, max(-(-count // workers), _MIN_SLICE))
    slices = [slice(low, min(low + batch_size, count)) for low in range(0, count, batch_size)]
    if workers == 1 or len(slices) < 2:
        for batch in _with_bar(slices, len(slices), show):
            work(batch)
        return
    with _one_core_each(), ThreadPoolExecutor(workers, "rejoinder") as pool:
        for _ in _with_bar(pool.map(work, slices), len(slices), show):
            pass


_lock = Lock()
_limits: list[Any] = []
"""The BLAS thread limit, once for each `each_batch` call in progress."""


@contextmanager
def _one_core_each() -> Iterator[None]:
    """Limits matrix products to one core while any caller is inside; the last restores them."""
    with _lock:
        # the first caller records the previous setting, and later callers share its limit
        _limits.append(_limits[-1] if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    """Returns the controller, created once because that scans all loaded libraries."""
    return ThreadpoolController()


def _with_bar(items: Iterable[_Item], total: int, show: bool) -> Iterator[_Item]:
    """Yields the items, with a progress bar on standard error if `show`."""
    if not show:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, "encoding", total=total, console=Console(stderr=True))
