"""Devices, threads and signals of a run, and its workers: processes that train a model together.

`torchrun` starts the workers. Each holds the complete model and processes its part of each batch.
They communicate through torch.distributed: gloo on the CPU, NCCL on GPUs. Only worker 0 writes to
the run's folder, which all of them read.

Dense gradients are summed over the workers. A dense all-reduce of an embedding table would send
every row, touched or not: hundreds of MB per step. Instead, workers tell each other which rows
their sentences read. If an encoder sums rows, they send the gradients by the sums, which are fewer
than the rows, and each worker computes the rest.
"""

import ctypes
import datetime
import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from rejoinder.encoders.nn.layers import RowGradient, gradient_of_rows, merged, short_spins
from rejoinder.errors import InputError, OtherWorkerError, RejoinderError, TrainingError
from rejoinder.io.files.system import processor_name, usable_cores
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.stream import WHOLE, Part

if TYPE_CHECKING:
    from rejoinder.training.loop.model import Optimizers


_TIMEOUT = datetime.timedelta(hours=6)
"""How long a worker waits for the others, such as while worker 0 evaluates. If a process ends, the
others notice at once, because its connections close."""
_LOST = "rejoinder/lost"
_P = ParamSpec("_P")
_R = TypeVar("_R")


class LostError(RejoinderError):
    """Another worker ended while this one was waiting for it."""


def _waiting(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Turns the errors of torch.distributed into `LostError`."""

    @wraps(call)
    def wrapped(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return call(*args, **options)
        except RuntimeError as error:
            raise LostError(str(error)) from None

    return wrapped


@dataclass(frozen=True)
class Workers:
    """All workers of a run, seen from one of them. With one worker, most methods do nothing."""

    part: Part = WHOLE
    """The number of this worker and the number of workers."""
    store: Any = field(default=None, repr=False)

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        return self.part.index

    @property
    def count(self) -> int:
        """Number of workers."""
        return self.part.count

    @property
    def leads(self) -> bool:
        """Whether this is worker 0, which writes and reports."""
        return self.rank == 0

    @_waiting
    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Returns the tensors of all workers, which have the same shape, in their order."""
        found = [torch.empty_like(tensor) for _ in range(self.count)]
        dist.all_gather(found, tensor.contiguous())
        return found

    @_waiting
    def add(self, tensor: Tensor) -> None:
        """Replaces a tensor by the sum over all workers, with the same bytes in each of them."""
        dist.all_reduce(tensor)

    @_waiting
    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Copies the values of worker 0 to all workers."""
        for tensor in tensors if self.count > 1 else ():
            dist.broadcast(tensor, 0)

    @_waiting
    def collect(self, value: Any) -> list[Any]:
        """Returns the small values of all workers, in their order."""
        values = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """Fails in all workers if the block fails in one of them.

        Raises:
            RejoinderError: the error of the block, in the first worker where it failed.
            OtherWorkerError: in all others.
        """
        error: RejoinderError | None = None
        try:
            yield
        except RejoinderError as caught:
            error = caught
        failed = self.collect(error is not None)
        if error is not None and self.rank == failed.index(True):
            raise error
        if any(failed):
            raise OtherWorkerError(f"worker {failed.index(True)} failed")

    def error(self, message: str) -> TrainingError:
        """Returns the error to raise if all workers fail; only worker 0 explains it."""
        return TrainingError(message) if self.leads else OtherWorkerError(message)

    def lost(self, message: str) -> TrainingError:
        """Returns the error to raise after `LostError`; only the first caller explains it."""
        try:
            first = self.store is None or self.store.add(_LOST, 1) == 1
        except RuntimeError:  # the store ended with the worker that held it
            first = True
        return TrainingError(message) if first else OtherWorkerError(message)


ALONE = Workers()


@contextmanager
def joined_workers(device: str) -> Iterator[Workers]:
    """Joins the other workers that `torchrun` started; without `torchrun` there is one worker.

    `device` is the requested device; see `worker_device`.

    Raises:
        InputError: an environment variable of `torchrun` or the device is missing.
    """
    count = _number("WORLD_SIZE", 1)
    if count < 2:
        yield ALONE
        return
    rank = _number("RANK")
    if not 0 <= rank < count or "MASTER_ADDR" not in os.environ:
        raise InputError(
            f"WORLD_SIZE is {count}, RANK is {rank}, MASTER_ADDR is "
            f"{os.environ.get('MASTER_ADDR', 'unset')}; torchrun sets all three for its workers."
        )
    gpu = worker_device(device).type == "cuda"  # NCCL communicates through that GPU
    try:
        store, _, _ = next(iter(rendezvous("env://", rank, count, timeout=_TIMEOUT)))
        dist.init_process_group(
            "nccl" if gpu else "gloo", store=store, rank=rank, world_size=count, timeout=_TIMEOUT
        )
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"worker {rank} of {count} can't join the others: {error}") from None
    try:
        yield Workers(Part(rank, count), store=store)
    finally:
        dist.destroy_process_group()


def worker_leads() -> bool:
    """Whether this process is worker 0 or the only one; does not join the others."""
    return _number("WORLD_SIZE", 1) < 2 or _number("RANK", 0) == 0


def _number(name: str, default: int | None = None) -> int:
    text = os.environ.get(name, "" if default is None else str(default))
    if not text.isdecimal():
        raise InputError(
            f"{name} is {text!r}; torchrun sets it to a number. Without torchrun, unset WORLD_SIZE."
        )
    return int(text)


def exchange(
    workers: Workers, optimizers: "Optimizers", dense: Sequence[nn.Parameter], facts: Tensor
) -> Tensor:
    """Replaces all gradients by their sums over the workers, and returns the sum of `facts`.

    Args:
        workers: the workers of the run.
        optimizers: the optimisers of the run, after `collect`.
        dense: the parameters that this step trains in any worker; the same in all workers.
        facts: (F,) float32 numbers about the step.
    """
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
            table.pending = _summed_rows(workers, gradient, ids, owners)
            table.table.seen.index_fill_(0, table.pending.rows, True)
    return sums[0]


def _summed_rows(
    workers: Workers, own: RowGradient, ids: Sequence[int], owners: Sequence[int]
) -> RowGradient:
    """Returns the sum of the gradients by a table; `ids` and `owners` are counts by worker."""
    if not max(ids):
        return own
    pairs = torch.stack([own.ids, own.owners], dim=1).to(torch.int32)
    found = workers.gather(_padded(pairs, max(ids)))
    parts = [part[:count].long().unbind(1) for part, count in zip(found, ids, strict=True)]
    union, places, offsets = merged(
        [rows for rows, _ in parts], [owned for _, owned in parts], owners
    )
    # compare in rows: gathering sends several copies of rows that several workers touch
    if max(owners) <= 2 * len(union) // workers.count:
        by_worker = workers.gather(_padded(own.by_owner, max(owners)))
        together = [part[:count] for part, count in zip(by_worker, owners, strict=True)]
        return RowGradient(union, places, offsets, torch.cat(together))
    total = own.by_owner.new_zeros(len(union), own.by_owner.shape[1])
    total.index_copy_(0, torch.searchsorted(union, own.rows), own.summed())
    workers.add(total)
    return gradient_of_rows(union, total)


def _padded(tensor: Tensor, length: int) -> Tensor:
    """Returns a tensor padded with zeros to a length."""
    padded = tensor.new_zeros(length, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    return padded


def check_batches(config: RunConfig, workers: Workers) -> None:
    """Checks that the batches of all tasks can be divided among the workers.

    Raises:
        InputError: they are too small.
    """
    for task in config.mixture:
        for size in [task.batch_size] if task.batch_size else [p.batch_size for p in config.phases]:
            workers.part.check(size, f"task {task.label}")


def pick_device(name: str) -> torch.device:
    """Returns a device by name; `auto` means CUDA if there is a CUDA device, else the CPU.

    Raises:
        InputError: the name is unknown, or CUDA is requested but absent.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda; got {name!r}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("no CUDA device was found; use `device='cpu'`, or a torch with CUDA.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def worker_device(name: str) -> torch.device:
    """Returns the device of this worker; with GPUs, each worker gets its own.

    Raises:
        InputError: see `pick_device`, or the host has fewer GPUs than workers.
    """
    device = pick_device(name)
    if device.type != "cuda":
        return device
    gpus, number = torch.cuda.device_count(), _number("LOCAL_RANK", 0)
    if number >= gpus:
        raise InputError(
            f"worker {number} finds {gpus} CUDA devices; start --nproc-per-node {gpus} workers."
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def multiplies_in_bfloat16(device: torch.device) -> bool:
    """Whether matrix products are faster in bfloat16 than in float32 on `device`.

    Without instructions for bfloat16, torch emulates it at less than half the speed of float32. AMD
    processors with AVX-512 reach twice the speed of float32; Intel's without AMX, a third
    (notebook/scaling.md).
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # torch has no public name for these
    by_vectors = torch.cpu._is_avx512_bf16_supported() and "intel" not in processor_name().lower()
    return by_vectors or torch.cpu._is_amx_tile_supported()


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
"""Parameters of `mallopt` in glibc's malloc.h."""
_KEPT = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 2**28, _MMAP_MAX: 0}
_DEFAULTS = {_TRIM_THRESHOLD: 2**17, _TOP_PAD: 2**17, _MMAP_MAX: 2**16}


@contextmanager
def kept_memory() -> Iterator[None]:
    """Lets the C library keep the memory that the block frees, for its next large tensor.

    glibc requests each large tensor from the system and returns it at once, and a step allocates
    hundreds of MB: zeroing the pages again took a third of a step with 1,024 dimensions. Without
    glibc this does nothing. The setting applies to the process; at the end, glibc's defaults are
    restored and the kept memory is returned to the system.
    """
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    for parameter, value in _KEPT.items():
        library.mallopt(parameter, value)
    try:
        yield
    finally:
        for parameter, value in _DEFAULTS.items():
            library.mallopt(parameter, value)
        library.malloc_trim(0)


def compile_blocks(encoder: nn.Module) -> None:
    """Compiles the blocks of a Transformer with `torch.compile`, when they first run.

    Dropout still draws from torch's generators, so that a part of a batch that is encoded twice
    gets the same dropout.

    Raises:
        InputError: there is neither a C++ compiler nor a CUDA device.
    """
    compilers = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    if not torch.cuda.is_available() and not any(map(shutil.which, compilers)):
        raise InputError(
            "training.compile needs a C++ compiler; install g++, set CXX, or leave the setting out."
        )
    for block in encoder.get_submodule("blocks").children():
        block.compile(dynamic=True, options={"fallback_random": True})


@contextmanager
def own_torch_state(device: torch.device, threads: int | None) -> Iterator[None]:
    """Sets torch's CPU threads, if not None, and lets the block seed torch; restores both.

    Idle threads sleep soon (`short_spins`).

    Both are global to the process: the number of CPU threads, and the state of the generators of
    the CPU and of `device`. Other threads that use torch meanwhile are affected.
    """
    before = torch.get_num_threads()
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), short_spins():
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            if threads is not None:
                torch.set_num_threads(before)


def seed_generators(device: torch.device, seed: int) -> None:
    """Seeds torch's generators of the CPU and of `device`; see `own_torch_state`."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


@contextmanager
def collected_signals() -> Iterator[list[signal.Signals]]:
    """Collects SIGINT and SIGTERM in a list instead of ending the process; a second one ends it."""
    received: list[signal.Signals] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))

    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, receive)
    except ValueError:  # outside the main thread, where no signal arrives
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe_machine() -> dict[str, object]:
    """Returns processor, cores, accelerator and versions, to report with a measured speed."""
    return {
        "processor": processor_name(),
        "cores": usable_cores(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "bf16": multiplies_in_bfloat16(pick_device("auto")),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
