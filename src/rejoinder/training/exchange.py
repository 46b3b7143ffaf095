"""The exchange of gradients between workers: dense ones summed, and touched rows of tables alone.

A dense all-reduce of an embedding table would send every row, touched or not: hundreds of MB a
step. Here workers tell each other which rows they touched, and send the gradients of those.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rejoinder.training.optimizers import Optimizers, RowGradient, add_rows
from rejoinder.training.workers import Workers


@dataclass
class Traffic:
    """Bytes that this worker sent, by the ring algorithms of all-reduce and all-gather."""

    dense: int = 0
    """For the gradients of dense layers, and the numbers of the step."""
    rows: int = 0
    """For the rows of tables: their ids and gradients."""
    whole: int = 0
    """What an all-reduce of all gradients would have sent, tables as a whole."""


class Exchange:
    """Sums the gradients of a step over the workers of a run."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.traffic = Traffic()

    def __call__(
        self, optimizers: Optimizers, dense: Sequence[nn.Parameter], facts: Tensor
    ) -> Tensor:
        """Replaces all gradients by their sums over the workers, and returns the sum of `facts`.

        Args:
            optimizers: those of the run, after `collect`.
            dense: the parameters that this step trains at any worker; the same at all of them.
            facts: (F,) float32 numbers on the step.
        """
        workers = self.workers
        if workers.count == 1:
            return facts
        tables = optimizers.rows
        counts = facts.new_zeros(len(tables), workers.count)
        for number, table in enumerate(tables):
            counts[number, workers.rank] = len(table.pending.rows)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in dense]
        flat = torch.cat([facts, *(part.reshape(-1) for part in (counts, *gradients))])
        workers.add(flat)
        sums = torch.split(flat, [len(facts), counts.numel(), *(p.numel() for p in dense)])
        for parameter, total in zip(dense, sums[2:], strict=True):
            parameter.grad = total.view_as(parameter)
        self._count(dense=flat.numel() * flat.element_size())
        if tables:
            sizes = sums[1].view_as(counts).round().long().tolist()
            for table, size in zip(tables, sizes, strict=True):
                table.pending = self._rows(table.pending, table.table.weight, size)
                table.table.seen.index_fill_(0, table.pending.rows, True)
        return sums[0]

    def _rows(self, own: RowGradient, weight: Tensor, counts: Sequence[int]) -> RowGradient:
        """Returns the sum of the gradients of the rows that any worker touched."""
        workers, most = self.workers, max(counts)
        if not most:
            return own
        found = workers.gather(_padded(own.rows, most))
        rows = [ids[:count] for ids, count in zip(found, counts, strict=True)]
        union = torch.unique(torch.cat(rows))
        places = [torch.searchsorted(union, ids) for ids in rows]
        total = own.gradient.new_zeros(len(union), weight.shape[1])
        row = weight.shape[1] * weight.element_size()
        # rows that many workers touch are many times in what is gathered, and once in a sum
        gathered = (workers.count - 1) * most * row
        reduced = _ring(len(union) * row, workers.count)
        if gathered <= reduced:
            parts = workers.gather(_padded(own.gradient, most))
            total.index_copy_(0, places[0], parts[0][: counts[0]])
            for place, part, count in list(zip(places, parts, counts, strict=True))[1:]:
                add_rows(total, place, part[:count])
        else:
            total.index_copy_(0, places[workers.rank], own.gradient)
            workers.add(total)
        ids = (workers.count - 1) * most * own.rows.element_size()
        self._count(rows=ids + min(gathered, reduced), whole=weight.numel() * 4)
        return RowGradient(union, weight.index_select(0, union), total)

    def _count(self, dense: int = 0, rows: int = 0, whole: int = 0) -> None:
        count = self.workers.count
        self.traffic.dense += _ring(dense, count)
        self.traffic.rows += rows
        self.traffic.whole += _ring(dense + whole, count)


def _ring(size: int, workers: int) -> int:
    """Returns the bytes that a worker sends in an all-reduce of `size` bytes."""
    return 2 * (workers - 1) * size // workers


def _padded(tensor: Tensor, length: int) -> Tensor:
    """Returns a tensor with zeros behind it, up to a length."""
    if len(tensor) == length:
        return tensor
    padded = tensor.new_zeros(length, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    return padded
