"""The machine a run computes on: device, threads, memory, random generators, and a description."""

import ctypes
import os
import platform
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import nn

from rejoinder.encoders.nn.sparse import short_spins
from rejoinder.errors import InputError
from rejoinder.io.files.storage import processor_name, usable_cores


def pick_device(name: str) -> torch.device:
    """Returns the device of that name; `auto` is CUDA if there is a CUDA device, else the CPU.

    Raises:
        InputError: the name is unknown, or CUDA is asked for and absent.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda; got {name!r}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("no CUDA device was found; use `device='cpu'`, or a torch with CUDA.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def worker_device(name: str, number: int) -> torch.device:
    """Returns the device of the worker of that number on its host: GPUs are one each.

    Raises:
        InputError: see `pick_device`, or the host has fewer GPUs than workers.
    """
    device = pick_device(name)
    if device.type != "cuda":
        return device
    gpus = torch.cuda.device_count()
    if number >= gpus:
        raise InputError(
            f"worker {number} of this host finds {gpus} CUDA devices; start as many workers with "
            f"--nproc-per-node {gpus}, or train with `device='cpu'`."
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def multiplies_in_bfloat16(device: torch.device) -> bool:
    """Returns whether products of bfloat16 matrices are faster on `device` than those of float32.

    Without instructions for them torch emulates such products, at less than half the speed. AMD's
    AVX-512 gives them twice the speed of float32; Intel's, without AMX, a third
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

    glibc takes each large tensor from the system and gives it back at once, and a step allocates
    hundreds of MB: zeroing its pages anew took a third of a step with 1,024 dimensions. Elsewhere
    than on glibc nothing changes. It is a setting of the process; at the end it has glibc's
    defaults, and what is kept goes back to the system.
    """
    library = ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
    if library is None:
        yield
        return
    for parameter, value in _KEPT.items():
        library.mallopt(parameter, value)
    try:
        yield
    finally:
        for parameter, value in _DEFAULTS.items():
            library.mallopt(parameter, value)
        library.malloc_trim(0)


def compile_blocks(encoder: nn.Module) -> None:
    """Has `torch.compile` make code for the blocks of a Transformer, when they first run.

    Dropout still draws from torch's generators, so that a part of a batch that is encoded twice has
    the same.

    Raises:
        InputError: there is no C++ compiler, and no CUDA device.
    """
    compilers = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    if not torch.cuda.is_available() and not any(map(shutil.which, compilers)):
        raise InputError(
            "training.compile needs a C++ compiler, and none was found; install g++ or set CXX, or "
            "leave the setting out."
        )
    for block in encoder.get_submodule("blocks").children():
        block.compile(dynamic=True, options={"fallback_random": True})


@contextmanager
def own_torch_state(device: torch.device, threads: int | None) -> Iterator[None]:
    """Sets torch's CPU threads, if not None, and lets the block seed torch; restores both.

    Idle threads sleep soon (`short_spins`).

    Both are global to the process: the number of CPU threads, and the state of the generators of
    the CPU and of `device`. Other threads of the process that use torch meanwhile see the block's.
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
    """Returns processor, cores, accelerator and versions, to state with a measured speed."""
    return {
        "processor": processor_name(),
        "cores": usable_cores(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "bf16": multiplies_in_bfloat16(pick_device("auto")),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
