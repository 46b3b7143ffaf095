"""What a run computes on."""

import os
import platform
from pathlib import Path

import torch

from rejoinder.errors import InputError


def pick_device(name: str) -> torch.device:
    """The device of that name; `auto` is CUDA where there is some.

    Raises:
        InputError: CUDA is asked for and absent, or the name is unknown.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda; got {name!r}.")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise InputError("no CUDA device was found; take --device cpu, or a torch with CUDA.")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def describe_machine() -> dict[str, object]:
    """Processor, cores, accelerator, versions: what a figure of speed needs beside it."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
