"""Layers of the encoders in torch, and the interface between an encoder's module and training.

Sums over rows of a large table have gradients for the touched rows only. PyTorch's own sparse
gradients materialise one row per token and then coalesce them, which takes about half of a training
step. Here no row of the table is copied: sums are computed directly from the table, as leaves that
collect gradients. The gradient of a row is the sum of the gradients of all bags that contain it, so
the optimiser can compute it row by row, while it updates the rows.

On the CPU a C kernel (`_rows.c`) computes sums and updates rows on torch's own threads. Each sum is
computed by one thread, in the order of its rows, so the result does not depend on the number of
threads. The kernel and torch agree up to the rounding of float32 sums.

Dense layers form the network of the DAN and the heads of objectives. Encoders that read tokens in
order get batches in parts, whose sentences are sorted by length.
"""

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate, pairwise
from threading import Event, Thread
from typing import Any, Protocol, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.encoders import EncoderKind, Shapes, TextSizes
from rejoinder.encoders.settings import Activation, check
from rejoinder.errors import ConfigError, ModelError
from rejoinder.io.files.system import ask_for_huge_pages, spin_briefly, usable_cores
from rejoinder.registry import kernel
from rejoinder.text.ragged import Padded, Ragged, padded_groups


def threads_for(work: int, least: int) -> tuple[int, int]:
    """Returns the first arguments of a kernel: the address of `GOMP_parallel`, and the threads.

    Less than `least` work gets a single thread.
    """
    return _parallel(), torch.get_num_threads() if work >= least else 1


@contextmanager
def short_spins() -> Iterator[None]:
    """Lets idle threads of torch sleep soon, even if torch's settings let them spin for long.

    GNU's OpenMP limits spinning to microseconds while its pools have more threads than cores. A
    second, idle pool causes this.
    """
    address = 0 if spin_briefly() else _parallel()
    if not address:
        yield
        return
    begun, done = Event(), Event()

    def hold_pool() -> None:  # a pool belongs to the thread that made it, and ends with it
        nothing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
        arguments = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        begin = ctypes.CFUNCTYPE(None, type(nothing), *arguments)(address)
        begin(nothing, None, usable_cores(), 0)
        begun.set()
        done.wait()

    holder = Thread(target=hold_pool, name="rejoinder-spins", daemon=True)
    holder.start()
    begun.wait()
    try:
        yield
    finally:
        done.set()
        holder.join()


@cache
def _parallel() -> int:
    """Returns the address of `GOMP_parallel` in the OpenMP library of torch; 0 if it has none.

    A second thread pool would compete with torch's for the cores, and cost 0.1 ms per call.
    """
    try:
        function = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Base class of batches: dataclasses of tensors, other batches, and tuples of these."""

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


_LEAST_WORK = 2_048
"""Number of rows to read below which a second thread does not pay."""
EPSILON = 1e-8
"""Added by Adagrad to the roots that it divides by."""


@dataclass(frozen=True, slots=True)
class BagIndex(OnDevice):
    """The rows that N bags sum, ordered by bag and, for the gradient, by row.

    There are n ids in total, of U different rows.
    """

    ids: Tensor
    """(n,) int64, bag by bag."""
    offsets: Tensor
    """(N + 1,) int64, where each bag begins in `ids`."""
    rows: Tensor
    """(U,) int64, the touched rows in ascending order."""
    bags: Tensor
    """(n,) int64, the bag of each id, row by row."""
    row_offsets: Tensor
    """(U + 1,) int64, where each row begins in `bags`."""

    @property
    def counts(self) -> Tensor:
        """(N,) int64, number of ids in each bag."""
        return self.offsets.diff()


def index_bags(batch: Ragged) -> BagIndex:
    """Returns the index that the forward and the backward pass share; NumPy only."""
    ids = batch.ids.astype(np.int64)
    owners = np.repeat(np.arange(len(batch)), batch.lengths)
    rows, bags, row_offsets = _by_row(ids, owners)
    offsets = batch.offsets.astype(np.int64, copy=False)
    return BagIndex(*map(torch.from_numpy, (ids, offsets, rows, bags, row_offsets)))


def _by_row(
    ids: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows, owners and row offsets of a `RowGradient`."""
    # NumPy sorts int64 with the processor's vectors, and a stable argsort without: 0.3 ms, not 2
    places = np.sort((ids << 32) | np.arange(len(ids)))
    ordered = places >> 32
    first = np.empty(len(ordered), bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return ordered[starts], owners[places & 0xFFFFFFFF], np.append(starts, len(ordered))


@dataclass(frozen=True, slots=True)
class RowGradient:
    """The gradient of a loss by rows of a table, as sums of gradients by the owners of the rows.

    The gradient of `rows[i]` is the sum of the rows `owners[offsets[i]:offsets[i + 1]]` of
    `by_owner`. An owner is a bag, or a copy of a row.
    """

    rows: Tensor
    """(U,) int64, ascending."""
    owners: Tensor
    """(n,) int64."""
    offsets: Tensor
    """(U + 1,) int64."""
    by_owner: Tensor
    """(N, W) float32."""

    def summed(self) -> Tensor:
        """Returns the gradient by `rows`, (U, W)."""
        return sum_rows(self.by_owner, self.owners, self.offsets)

    def move(self, table: Tensor, squares: Tensor, rate: float) -> None:
        """Moves the rows of a table (R, W) against their gradients.

        With `squares` (R,) this is a step of Adagrad, which first adds the mean square of each
        gradient to them. If `squares` is empty, it is a step of plain SGD.
        """
        native = _native(self.by_owner)
        if native is not None:
            native.move_rows(
                *_arrays(self.by_owner, self.owners, self.offsets),
                *(table.numpy(), self.rows.numpy(), squares.numpy(), rate, EPSILON),
            )
            return
        moves = self.summed()
        if len(squares):
            found = squares.index_select(0, self.rows).add_(moves.square().mean(dim=1))
            squares.index_copy_(0, self.rows, found)
            moves *= (rate / found.sqrt().add_(EPSILON)).unsqueeze(1)
        else:
            moves *= rate
        table.index_copy_(0, self.rows, table.index_select(0, self.rows).sub_(moves))

    @property
    def ids(self) -> Tensor:
        """(n,) int64, the row of each owner, ascending."""
        return self.rows.repeat_interleave(self.offsets.diff())


def sum_rows(values: Tensor, places: Tensor, offsets: Tensor) -> Tensor:
    """Returns (S, W): sum i is over rows `places[offsets[i]:offsets[i + 1]]` of `values`."""
    native = _native(values)
    if native is None:
        return F.embedding_bag(places, values, offsets, mode="sum", include_last_offset=True)
    out: Tensor = values.new_empty(len(offsets) - 1, values.shape[1])
    native.sum_rows(*_arrays(values, places, offsets), out.numpy())
    return out


def _native(values: Tensor) -> Any:
    """Returns the kernel, or None if it can't be used."""
    fits = values.device.type == "cpu" and values.is_contiguous()
    return kernel("encoders.nn._rows") if fits else None


def _arrays(values: Tensor, places: Tensor, offsets: Tensor) -> tuple[Any, ...]:
    """Returns the first arguments of the kernel."""
    threads = threads_for(len(places), _LEAST_WORK)
    return *threads, values.shape[1], values.numpy(), places.numpy(), offsets.numpy()


def gradient_of_rows(rows: Tensor, gradient: Tensor) -> RowGradient:
    """Returns the (U, W) gradient by the ascending rows `rows` (U,)."""
    each = torch.arange(len(rows) + 1, device=rows.device)
    return RowGradient(rows, each[:-1], each, gradient)


def merged(
    ids: Sequence[Tensor], owners: Sequence[Tensor], counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Merges gradients with separate owners; `counts` are the numbers of owners.

    Returns:
        The `rows`, `owners` and `offsets` of their sum, with the owners concatenated.
    """
    firsts = [0, *accumulate(counts)]
    together = torch.cat([part + first for part, first in zip(owners, firsts, strict=False)])
    by_row = _by_row(torch.cat(list(ids)).cpu().numpy(), together.cpu().numpy())
    rows, places, offsets = (torch.from_numpy(part).to(together.device) for part in by_row)
    return rows, places, offsets


class SparseTable(nn.Module):
    """A table with only a few rows read and updated in each step.

    `sum_bags` and `gather` return leaves that collect gradients. After the backward pass the
    optimiser calls `take_gradient` and updates the rows.
    """

    def __init__(self, rows: int, width: int, std: float, generator: torch.Generator) -> None:
        super().__init__()
        weight = torch.empty(rows, width)
        ask_for_huge_pages(weight.data_ptr(), weight.nbytes)
        weight.normal_(0.0, std, generator=generator)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.register_buffer("seen", torch.zeros(rows, dtype=torch.bool))
        self.seen: Tensor
        """(rows,) bool, rows that were trained; the others are random and dropped at export."""
        self.touched: list[tuple[BagIndex | Tensor, Tensor]] = []
        """Bags or rows read since the last `take_gradient`, with their leaves."""

    @torch.no_grad()
    def weigh_by_rank(self, factor: float) -> None:
        """Scales the initial row of rank r by `factor` * ln(r + e).

        Rows are in order of frequency. Under Zipf's law ln(r) is the inverse document frequency of
        the word of rank r up to a constant, so sums start out weighted as in Arora et al. (2017).
        """
        ranks = torch.arange(len(self.weight), dtype=torch.float32)
        self.weight.mul_((factor * torch.log(ranks + math.e)).unsqueeze(1))

    def sum_bags(self, bags: BagIndex) -> Tensor:
        """Returns (N, width), the sum of the rows of each bag."""
        sums = sum_rows(self.weight.detach(), bags.ids, bags.offsets)
        return self._leaf(bags, bags.rows, sums)

    def gather(self, rows: Tensor) -> Tensor:
        """Returns (U, width), a copy of the rows `rows` (U,), which must be distinct."""
        return self._leaf(rows, rows, self.weight.detach().index_select(0, rows))

    def _leaf(self, read: BagIndex | Tensor, rows: Tensor, values: Tensor) -> Tensor:
        if self.training and torch.is_grad_enabled():
            values.requires_grad_()
            self.touched.append((read, values))
            self.seen.index_fill_(0, rows, True)
        return values

    @torch.no_grad()
    def take_gradient(self) -> RowGradient:
        """Returns and clears the gradient of everything read since the last call."""
        found = [
            _gradient(read, values.grad) for read, values in self.touched if values.grad is not None
        ]
        self.touched.clear()
        if len(found) == 1:
            return found[0]
        if found:
            by_owner = [part.by_owner for part in found]
            ids, owners = [part.ids for part in found], [part.owners for part in found]
            return RowGradient(*merged(ids, owners, list(map(len, by_owner))), torch.cat(by_owner))
        none = torch.empty(0, dtype=torch.int64, device=self.weight.device)
        return gradient_of_rows(none, self.weight.new_empty(0, self.weight.shape[1]))


def _gradient(read: BagIndex | Tensor, gradient: Tensor) -> RowGradient:
    gradient = gradient.contiguous()
    if isinstance(read, BagIndex):
        return RowGradient(read.rows, read.bags, read.row_offsets, gradient)
    return gradient_of_rows(read, gradient)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "none": lambda x: x,
    "relu": F.relu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Linear layers with an activation between them and none after the last.

    With `residual` the input is added to the output, through a linear map (`skip`) where the
    widths differ. Without layers it is the identity.
    """

    def __init__(
        self,
        width: int,
        layers: Sequence[int],
        activation: Activation,
        *,
        residual: bool,
        generator: torch.Generator,
    ) -> None:
        """Draws layers of the given sizes on inputs of `width` from `generator`."""
        super().__init__()
        sizes = [width, *layers]
        self.dim = sizes[-1]
        self.activation = ACTIVATIONS[activation]
        self.layers = nn.ModuleList(
            _linear(inside, outside, generator) for inside, outside in pairwise(sizes)
        )
        self.residual = residual and bool(layers)
        self.skip = None
        if self.residual and width != self.dim:
            self.skip = _linear(width, self.dim, generator, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, width) to (N, dim)."""
        return self._through(x, None)

    def first_entries(self, x: Tensor) -> Tensor:
        """Returns (N, n), the first `n` entries of the outputs for (N, n) `x` padded with zeros.

        Products with zeros or for unused outputs are skipped.
        """
        return self._through(x, x.shape[1])

    def _through(self, x: Tensor, size: int | None) -> Tensor:
        y, last = x, len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            y = self.activation(y) if number else y
            y = _block(layer, y, size if number == last else None, None if number else size)
        if not self.residual:
            return y
        return y + (x if self.skip is None else _block(self.skip, x, size, size))


def _block(layer: nn.Module, x: Tensor, outside: int | None, inside: int | None) -> Tensor:
    """Applies the first `outside` units of a linear layer to its first `inside` inputs."""
    assert isinstance(layer, nn.Linear)  # noqa: S101 -- for the type checker
    if outside is inside is None:
        return layer(x)  # type: ignore[no-any-return]
    bias = None if layer.bias is None else layer.bias[:outside]
    return F.linear(x, layer.weight[:outside, :inside], bias)


def unit_rows(x: Tensor, present: Tensor) -> Tensor:
    """Returns (N, dim) float32 rows of length 1; rows where `present` (N,) is false become zero.

    The embedding of a sentence without known tokens must not depend on biases: it is zero.
    """
    x = x.float()
    lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(1e-12)  # as F.normalize
    rows: Tensor = x * (present.unsqueeze(1) / lengths)
    return rows


def _linear(
    inside: int, outside: int, generator: torch.Generator, *, bias: bool = True
) -> nn.Linear:
    """Returns a linear layer drawn from `generator` by Glorot's uniform rule, with a zero bias."""
    layer = nn.Linear(inside, outside, bias=bias)
    bound = (6.0 / (inside + outside)) ** 0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if bias:
            layer.bias.zero_()
    return layer


class TrainableEncoder(Protocol):
    """The extension point for encoders: an `nn.Module` with these members.

    It is built from (rows, config, generator): the number of distinct token ids, the settings of
    its kind, and the generator for all its weights.
    """

    dim: int
    """Embedding dimension."""

    def collate(self, batch: Ragged) -> Any:
        """Returns the input of `forward`, which has a method `to(device)`.

        Runs in another thread: NumPy and `torch.from_numpy` only, no gradients.
        """
        ...

    def __call__(self, batch: Any, *, normalize: bool = True) -> Tensor:
        """(N, dim) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        ...

    def tables(self) -> list[SparseTable]:
        """Returns the tables in which the optimiser updates only the rows that a step touched."""
        ...


BOOKKEEPING = ".seen"
"""Suffix of buffers that training keeps but a model folder leaves out."""


def encoder_config(kind: EncoderKind, values: Mapping[str, Any], where: str) -> Any:
    """Returns the config of an encoder from the table `encoder` of its `config.json`.

    Raises:
        ModelError: a size is invalid for the kind.
    """
    try:
        return check(kind.config_class, dict(values), where)
    except ConfigError as error:
        raise ModelError(f"{error} The folder is damaged.") from None


def shapes_of(kind: EncoderKind, encoder: Mapping[str, Any], text: TextSizes, where: str) -> Shapes:
    """Returns the shapes of the tensors of `kind`; see `EncoderKind.shapes`."""
    config = encoder_config(kind, encoder, f"{where}: encoder")
    rows, buckets = text.rows, text.bigram_buckets
    with torch.device("meta"):
        module = kind.module_class(rows + buckets, config, torch.Generator())
    shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    shapes = {name: shape for name, shape in shapes.items() if not name.endswith(BOOKKEEPING)}
    if buckets and kind.table is not None:
        shapes[kind.table] = (-1, *shapes[kind.table][1:])
        shapes["bigram_rows"] = (buckets,)
    return shapes


@dataclass(frozen=True, slots=True)
class PaddedGroup(OnDevice):
    """G sentences of similar lengths, padded to T positions, the length of the longest."""

    ids: Tensor
    """(G, T) int64, 0 where padded."""
    present: Tensor
    """(G, T) bool, false where padded."""


@dataclass(frozen=True, slots=True)
class SortedBatch(OnDevice):
    """A batch of N sentences in parts, without its empty sentences."""

    count: int
    """N, including empty sentences."""
    order: Tensor
    """(F,) int64, the indices of the sentences in the order of the parts."""
    parts: tuple[Any, ...]
    """The inputs of the encoder, one at a time, such as a `PaddedGroup`."""


def sorted_batch(count: int, groups: Sequence[Padded], parts: Iterable[Any]) -> SortedBatch:
    """Returns `parts`, which hold the sentences of `groups`, as a batch of `count` sentences."""
    order = np.concatenate([np.empty(0, np.int64), *(group.sentences for group in groups)])
    return SortedBatch(count, torch.from_numpy(order), tuple(parts))


def pad_groups(batch: Ragged, positions: int, overhead: int) -> SortedBatch:
    """Returns a batch whose parts are the groups of `text.ragged.padded_groups`. NumPy only."""
    groups = padded_groups(batch, positions, overhead)
    tensors = ((torch.from_numpy(each.ids), torch.from_numpy(each.present)) for each in groups)
    return sorted_batch(len(batch), groups, (PaddedGroup(*pair) for pair in tensors))


def encode_parts(
    batch: SortedBatch, encode: Callable[[Any], Tensor], dim: int, *, normalize: bool
) -> Tensor:
    """Returns (N, dim) float32 in the order of the batch, with zero rows for empty sentences.

    `encode` maps a part to the rows of its sentences, not normalised.
    """
    out = torch.zeros(batch.count, dim, dtype=torch.float32, device=batch.order.device)
    if not batch.parts:
        return out
    vectors = torch.cat([encode(part) for part in batch.parts])  # (F, dim)
    if normalize:
        vectors = unit_rows(vectors, torch.ones_like(batch.order, dtype=torch.bool))
    return out.index_copy(0, batch.order, vectors.float())
