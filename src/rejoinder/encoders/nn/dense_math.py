"""The arithmetic of dense layers: tanh, rows of length 1, and their gradients.

On the CPU a kernel in C (`_dense.c`) computes it, in one pass over memory and with as many
threads as torch has; elsewhere torch does. Both agree up to rounding in the dtype of the numbers,
and the number of threads changes no bit.
"""

from typing import Any

import torch
from torch import Tensor

from rejoinder.encoders.nn.shares import even_bounds, memory, parallel
from rejoinder.kernels import kernel

EPSILON = 1e-12
"""Least length by which rows are divided, that of `F.normalize`."""

_KINDS = {torch.float32: "f", torch.bfloat16: "b"}
_LEAST_WORK = 1 << 15
"""Numbers below which a second thread does not pay."""


def tanh(x: Tensor) -> Tensor:
    """Returns tanh of the entries, in their dtype and shape."""
    native = _native(x)
    if native is None:
        return torch.tanh(x)
    out = torch.empty_like(x)
    native.tanh(*_shares(x, x.numel()), _KINDS[x.dtype], memory(x), memory(out))
    return out


def lengths(x: Tensor) -> Tensor:
    """Returns (N,) float32, the Euclidean lengths of the rows of (N, D) `x`."""
    native = _native(x)
    if native is None:
        found: Tensor = torch.linalg.vector_norm(x.float(), dim=1)
        return found
    out = torch.empty(len(x))
    native.lengths(*_shares(x, len(x)), _KINDS[x.dtype], x.shape[1], *map(memory, (x, out)))
    return out


def unit_rows(x: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rows scaled to length 1, and what they were multiplied by.

    Args:
        x: (N, D) float32 or bfloat16.
        present: (N,) bool; the other rows become zero.

    Returns:
        (N, D) and (N, 1), float32.
    """
    native = _native(x)
    if native is None:
        x = x.float()
        factors = present.unsqueeze(1).float() / lengths(x).clamp_min(EPSILON).unsqueeze(1)
        return x * factors, factors
    rows, factors = torch.empty(x.shape), torch.empty(len(x), 1)
    arrays = map(memory, (x, present.contiguous(), rows, factors))
    native.unit_rows(*_shares(x, len(x)), _KINDS[x.dtype], x.shape[1], *arrays)
    return rows, factors


def unit_gradients(
    gradient: Tensor, rows: Tensor, factors: Tensor, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Returns (N, D), the gradient by vectors of that by `rows`, the vectors times `factors`.

    Args:
        gradient: (N, D) float32.
        rows: (N, D) float32, the vectors scaled to length 1, or zero.
        factors: (N, 1) float32.
        dtype: that of the result.
    """
    native = _native(gradient, rows)
    if native is None or dtype not in _KINDS:
        along = torch.linalg.vecdot(gradient, rows).unsqueeze(1)
        return torch.addcmul(gradient, rows, along, value=-1).mul_(factors).to(dtype)
    out = torch.empty(gradient.shape, dtype=dtype)
    arrays = map(memory, (gradient, rows, factors, out))
    native.unit_gradients(*_shares(gradient, len(rows)), _KINDS[dtype], rows.shape[1], *arrays)
    return out


def _native(*tensors: Tensor) -> Any:
    """Returns the kernel, or None where it can't work on these tensors."""
    fits = all(
        each.device.type == "cpu" and each.dtype in _KINDS and each.is_contiguous()
        for each in tensors
    )
    return kernel("encoders.nn._dense") if fits else None


def _shares(x: Tensor, count: int) -> tuple[int, int, Any]:
    """Returns the first arguments of a kernel on `count` rows, or numbers, of `x`."""
    threads = torch.get_num_threads() if x.numel() >= _LEAST_WORK else 1
    return parallel(), threads, even_bounds(count, threads)
