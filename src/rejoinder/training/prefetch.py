"""Makes items ahead of their use, in a thread of its own."""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def prefetched(items: Generator[Item, None, None], ahead: int) -> Iterator[Iterator[Item]]:
    """Gives an iterator over `items`, which a thread makes up to `ahead` before they are used.

    No item may be None. An error of `items` is raised after the items that came before it. The end
    of the block waits for the item that is being made, if any, and closes `items`.
    """
    with closing(items), ThreadPoolExecutor(1, "prefetch") as thread:
        upcoming = deque(thread.submit(next, items, None) for _ in range(ahead))

        def in_order() -> Iterator[Item]:
            while (item := upcoming.popleft().result()) is not None:
                upcoming.append(thread.submit(next, items, None))
                yield item

        try:
            yield in_order()
        finally:
            thread.shutdown(cancel_futures=True)
