"""The workers of a run: processes that train one model together, started by `torchrun`.

Every worker holds the whole model and takes its part of each batch. They talk through
torch.distributed: gloo on the CPU, NCCL on GPUs. Worker 0 alone writes to the run's folder, which
all of them read.
"""

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from rejoinder.errors import InputError, OtherWorkerError, RejoinderError, TrainingError
from rejoinder.training.data.batches import WHOLE, Part
from rejoinder.training.loop.machine import worker_device

_TIMEOUT = datetime.timedelta(hours=6)
"""How long a worker waits for the others, as while worker 0 evaluates. The end of a process shows
at once: its connections close."""
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
    """All workers of a run, as one of them sees them. Without others, few methods do anything."""

    part: Part = WHOLE
    """Which of them this one is, and how many they are."""
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
        """Replaces a tensor by the sum over all workers; it has the same bytes at all of them."""
        dist.all_reduce(tensor)

    @_waiting
    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Gives all workers the values of worker 0."""
        for tensor in tensors if self.count > 1 else ():
            dist.broadcast(tensor, 0)

    @_waiting
    def collect(self, value: Any) -> list[Any]:
        """Returns the values of all workers, small ones, in their order."""
        values = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """Fails at all workers if the block fails at one of them.

        Raises:
            RejoinderError: that of the block, at the first worker where it failed.
            OtherWorkerError: at all others.
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
        """Returns the error to raise where all workers fail: worker 0 explains it."""
        return TrainingError(message) if self.leads else OtherWorkerError(message)

    def lost(self, message: str) -> TrainingError:
        """Returns the error to raise after `LostError`: the first one to ask explains it."""
        try:
            first = self.store is None or self.store.add(_LOST, 1) == 1
        except RuntimeError:  # the store ended with the worker that had it
            first = True
        return TrainingError(message) if first else OtherWorkerError(message)


ALONE = Workers()


@contextmanager
def joined_workers(device: str) -> Iterator[Workers]:
    """Joins the workers that `torchrun` started with this one; without `torchrun` there is one.

    `device` is the one asked for; see `machine.worker_device`.

    Raises:
        InputError: what `torchrun` sets in the environment is not all there, or the device is not.
    """
    count = _number("WORLD_SIZE", 1)
    if count < 2:
        yield ALONE
        return
    rank = _number("RANK")
    if not 0 <= rank < count or "MASTER_ADDR" not in os.environ:
        raise InputError(
            f"WORLD_SIZE is {count} and RANK is {rank}, with MASTER_ADDR "
            f"{os.environ.get('MASTER_ADDR', 'unset')}: workers are started with torchrun, which "
            "sets all three; without workers, unset WORLD_SIZE."
        )
    gpu = worker_device(device, local_rank()).type == "cuda"  # NCCL talks through that GPU
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
    """Returns whether this process is worker 0, or no worker of several; joins no others."""
    return _number("WORLD_SIZE", 1) < 2 or _number("RANK", 0) == 0


def local_rank() -> int:
    """Returns the number of this worker on its host, from 0."""
    return _number("LOCAL_RANK", 0)


def _number(name: str, default: int | None = None) -> int:
    text = os.environ.get(name, "" if default is None else str(default))
    if not text.isdecimal():
        raise InputError(
            f"the environment variable {name} is {text!r}; torchrun sets it to a number, and "
            "without workers WORLD_SIZE is unset."
        )
    return int(text)
