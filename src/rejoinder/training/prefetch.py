"""Makes items ahead of their use, in a thread of its own."""

from collections import deque
from collections.abc import Generator
from contextlib import closing
from threading import Condition, Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """An iterator over `items`, which a thread puts into a bounded queue.

    The thread runs from `__enter__` to `__exit__`. An error of `items` is raised by `next`, after
    the items that came before it. `__exit__` waits for the item that is being made, if any, and
    closes `items` in the thread that ran it.
    """

    def __init__(self, items: Generator[Item, None, None], ahead: int) -> None:
        """Prepares the iterator; the thread is not started yet.

        Args:
            items: the generator to iterate over; it must not be used elsewhere.
            ahead: number of items that the queue holds at most, at least 1.
        """
        self._items, self._ahead = items, ahead
        self._queue: deque[Item] = deque()
        self._changed = Condition()
        self._ended, self._closed = False, False
        self._error: BaseException | None = None
        self._thread = Thread(target=self._fill, name="prefetch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._changed.notify_all()
        self._thread.join()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or self._ended or self._closed)
            if self._queue:
                self._changed.notify_all()
                return self._queue.popleft()
        if self._error is not None:
            raise self._error
        raise StopIteration

    def _fill(self) -> None:
        """Runs in the thread: queues items until they end, one fails, or `__exit__` is called."""
        try:
            with closing(self._items):
                for item in self._items:
                    if not self._put(item):
                        return
        except BaseException as error:  # `next` raises it again
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _put(self, item: Item) -> bool:
        """Queues an item once there is room; false if the iterator was closed instead."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) < self._ahead or self._closed)
            if not self._closed:
                self._queue.append(item)
                self._changed.notify_all()
            return not self._closed
