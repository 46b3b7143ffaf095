"""The exchange of gradients between workers: dense ones summed, and those of touched rows alone.

A dense all-reduce of an embedding table would send every row, touched or not: hundreds of MB a
step. Here workers tell each other which rows their sentences read. Where an encoder sums rows, they
send the gradients by the sums, of which there are fewer than rows, and each works out the rest.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rejoinder.encoders.nn.sparse import RowGradient, gradient_of_rows, merged
from rejoinder.training.loop.optimizers import Optimizers
from rejoinder.training.workers.workers import Workers


class Exchange:
    """Sums the gradients of a step over the workers of a run."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

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
        pending = [table.pending for table in tables if table.pending is not None]
        counts = facts.new_zeros(len(pending), 2, workers.count)
        for number, gradient in enumerate(pending):
            lengths = [len(gradient.owners), len(gradient.by_owner)]  # of ids and of owners
            counts[number, :, workers.rank] = facts.new_tensor(lengths)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in dense]
        flat = torch.cat([facts, *(part.reshape(-1) for part in (counts, *gradients))])
        workers.add(flat)
        sums = torch.split(flat, [len(facts), counts.numel(), *(p.numel() for p in dense)])
        for parameter, total in zip(dense, sums[2:], strict=True):
            parameter.grad = total.view_as(parameter)
        if pending:
            sizes = sums[1].view_as(counts).round().long().tolist()
            for table, gradient, (ids, owners) in zip(tables, pending, sizes, strict=True):
                table.pending = self._rows(gradient, ids, owners)
                table.table.seen.index_fill_(0, table.pending.rows, True)
        return sums[0]

    def _rows(self, own: RowGradient, ids: Sequence[int], owners: Sequence[int]) -> RowGradient:
        """Returns the sum of the gradients by a table; `ids` and `owners` are numbers by worker."""
        workers = self.workers
        if not max(ids):
            return own
        pairs = torch.stack([own.ids, own.owners], dim=1).to(torch.int32)
        found = workers.gather(_padded(pairs, max(ids)))
        parts = [part[:count].long().unbind(1) for part, count in zip(found, ids, strict=True)]
        union, places, offsets = merged(
            [rows for rows, _ in parts], [owned for _, owned in parts], owners
        )
        row = own.by_owner.shape[1] * own.by_owner.element_size()
        # copies of rows that many workers touch are many times in what is gathered
        gathered = (workers.count - 1) * max(owners) * row
        reduced = 2 * (workers.count - 1) * len(union) * row // workers.count
        if gathered <= reduced:
            by_worker = workers.gather(_padded(own.by_owner, max(owners)))
            together = [part[:count] for part, count in zip(by_worker, owners, strict=True)]
            return RowGradient(union, places, offsets, torch.cat(together))
        total = own.by_owner.new_zeros(len(union), own.by_owner.shape[1])
        total.index_copy_(0, torch.searchsorted(union, own.rows), own.summed())
        workers.add(total)
        return gradient_of_rows(union, total)


def _padded(tensor: Tensor, length: int) -> Tensor:
    """Returns a tensor padded with zeros to a length."""
    if len(tensor) == length:
        return tensor
    padded = tensor.new_zeros(length, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    return padded
