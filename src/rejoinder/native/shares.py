"""Threads for kernels that do a share of their work per call."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise


def in_shares(work: Callable[[int, int], None], bounds: Sequence[int]) -> None:
    """Calls `work` with each two neighbouring `bounds`, all at once in threads."""
    shares = list(pairwise(bounds))
    others = [_pool(len(shares)).submit(work, *share) for share in shares[1:]]
    work(*shares[0])
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, "kernel")
