"""Work in threads, a few items ahead of the consumer."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def mapped_ahead(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yields `work` of each item in their order; as many as `threads` are computed ahead."""
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
