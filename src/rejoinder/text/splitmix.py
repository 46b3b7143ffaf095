"""The mixing function of splitmix64 (Steele et al. 2014), for whole arrays.

Bigram buckets of models and the shipped lists of leaks depend on it: it must never change.
"""

import numpy as np
from numpy.typing import NDArray

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""The odd 64-bit integer nearest to 2**64 over the golden ratio: the increment of splitmix64."""


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns (N,) uint64: each value mixed by the finaliser of splitmix64, a bijection.

    >>> [hex(value) for value in mix64(np.array([0, 1, GOLDEN_GAMMA], np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5', '0xe220a8397b1dcdaf']
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
