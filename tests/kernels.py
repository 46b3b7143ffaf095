"""What has two ways, a kernel in C and torch, computed by both."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from rejoinder import registry


def both_ways(module: ModuleType, work: Callable[[], Any]) -> tuple[Any, Any]:
    """Returns what `work` computes with the kernel of a module, however little it is, and without.

    The module's `_LEAST_WORK` is what its kernel is worth calling for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LEAST_WORK", 1)
        found = work()
        patch.setattr(registry, "WITHOUT_KERNELS", True)
        return found, work()
