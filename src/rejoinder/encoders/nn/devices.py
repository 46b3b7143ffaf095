"""What an encoder reads of a batch, moved between devices."""

from dataclasses import dataclass, fields
from typing import Any, Self

import torch


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Base class of a batch: a dataclass of tensors, of other batches, and of tuples of these."""

    def to(self, device: torch.device) -> Self:
        """Returns a copy on `device`."""
        return type(self)(*(_moved(getattr(self, each.name), device) for each in fields(self)))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        if device.type == "cuda":  # from pinned memory, without waiting for the GPU's work
            value = value.pin_memory()
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple):
        return tuple(_moved(each, device) for each in value)
    return value.to(device) if hasattr(value, "to") else value
