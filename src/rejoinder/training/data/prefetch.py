"""Makes items ahead of their use, in a thread of its own."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """An iterator over items that a thread makes before they are used.

    A context manager: leaving it waits for the item that is being made, if any, and closes the
    generator. An error of the generator is raised after the items that came before it.
    """

    def __init__(self, items: Generator[Item, None, None], ahead: int) -> None:
        """Prefetches up to `ahead` of `items`, none of which may be None."""
        self._items, self._ahead = items, ahead
        self._upcoming: deque[Future[Item | None]] = deque()
        self._thread = ThreadPoolExecutor(1, "prefetch")

    def __enter__(self) -> Self:
        for _ in range(self._ahead):
            self._make()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._items.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        item = self._upcoming.popleft().result() if self._upcoming else None
        if item is None:
            raise StopIteration
        self._make()
        return item

    def _make(self) -> None:
        self._upcoming.append(self._thread.submit(next, self._items, None))
