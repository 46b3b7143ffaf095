"""The exchange of gradients between workers: dense ones summed, and those of touched rows alone.

A dense all-reduce of an embedding table would send every row, touched or not: hundreds of MB a
step. Here workers tell each other which rows their sentences read. Where an encoder sums rows, they
send the gradients by the sums, of which there are fewer than rows, and each works out the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from rejoinder.encoders.nn.sparse import RowGradient, gradient_of_rows, merged
from rejoinder.training.loop.optimizers import Optimizers
from rejoinder.training.workers.workers import Peers, Workers


@dataclass
class Traffic:
    """Bytes that this worker sent, by the ring algorithms of all-reduce and all-gather."""

    dense: int = 0
    """For the gradients of dense layers, and the numbers of the step."""
    rows: int = 0
    """For the rows of tables: their ids, and the gradients by sums of them or by rows."""
    candidates: int = 0
    """For candidates that all workers rank: their embeddings, and the gradients by them."""
    whole: int = 0
    """What an all-reduce of all gradients would have sent, tables as a whole."""


@dataclass(frozen=True)
class CountedPeers(Peers):
    """Peers that exchange candidates, which is counted."""

    exchange: "Exchange" = field(kw_only=True, repr=False)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """See `Peers.gather`."""
        self._count((self.part.count - 1) * _size(tensor))
        return super().gather(tensor)

    def add(self, tensor: Tensor) -> None:
        """See `Peers.add`."""
        self._count(_ring(_size(tensor), self.part.count))
        super().add(tensor)

    def most(self, tensor: Tensor) -> None:
        """See `Peers.most`."""
        self._count(_ring(_size(tensor), self.part.count))
        super().most(tensor)

    def _count(self, size: int) -> None:
        self.exchange.traffic.candidates += size


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
        pending = [table.pending for table in tables if table.pending is not None]
        counts = facts.new_zeros(len(pending), 2, workers.count)
        for number, gradient in enumerate(pending):
            counts[number, :, workers.rank] = facts.new_tensor(_sizes(gradient))
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in dense]
        flat = torch.cat([facts, *(part.reshape(-1) for part in (counts, *gradients))])
        workers.add(flat)
        sums = torch.split(flat, [len(facts), counts.numel(), *(p.numel() for p in dense)])
        for parameter, total in zip(dense, sums[2:], strict=True):
            parameter.grad = total.view_as(parameter)
        self._count(dense=_size(flat))
        if pending:
            sizes = sums[1].view_as(counts).round().long().tolist()
            for table, gradient, (ids, owners) in zip(tables, pending, sizes, strict=True):
                table.pending = self._rows(gradient, len(table.table.weight), ids, owners)
                table.table.seen.index_fill_(0, table.pending.rows, True)
        return sums[0]

    def _rows(
        self, own: RowGradient, rows: int, ids: Sequence[int], owners: Sequence[int]
    ) -> RowGradient:
        """Returns the sum of the gradients by a table of so many rows.

        `ids` and `owners` are their numbers at each worker.
        """
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
        reduced = _ring(len(union) * row, workers.count)
        more = (workers.count - 1) * max(ids) * pairs.element_size() * 2
        self._count(rows=more + min(gathered, reduced), whole=rows * row)
        if gathered <= reduced:
            by_worker = workers.gather(_padded(own.by_owner, max(owners)))
            together = [part[:count] for part, count in zip(by_worker, owners, strict=True)]
            return RowGradient(union, places, offsets, torch.cat(together))
        total = own.by_owner.new_zeros(len(union), own.by_owner.shape[1])
        total.index_copy_(0, torch.searchsorted(union, own.rows), own.summed())
        workers.add(total)
        return gradient_of_rows(union, total)

    def _count(self, dense: int = 0, rows: int = 0, whole: int = 0) -> None:
        count = self.workers.count
        self.traffic.dense += _ring(dense, count)
        self.traffic.rows += rows
        self.traffic.whole += _ring(dense + whole, count)


def _sizes(gradient: RowGradient) -> tuple[int, int]:
    """Returns the numbers of ids and of owners of a gradient."""
    return len(gradient.owners), len(gradient.by_owner)


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


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
