"""Torch's global state: set for a block, given back to the caller."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rejoinder.errors import InputError
from rejoinder.training.workers import (
    multiplies_in_bfloat16,
    own_torch_state,
    pick_device,
    seed_generators,
)

CPU = torch.device("cpu")


def test_threads_and_generators_are_the_blocks_own_also_after_an_error():
    threads, state = torch.get_num_threads(), torch.get_rng_state()

    def block():
        with own_torch_state(CPU, threads + 1):
            assert torch.get_num_threads() == threads + 1
            seed_generators(CPU, 3)
            raise KeyError

    with pytest.raises(KeyError):
        block()
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_without_a_number_the_threads_stay_as_they_are():
    threads = torch.get_num_threads()
    with own_torch_state(CPU, None):
        torch.set_num_threads(threads + 1)
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)


MEMORY = """
import json, resource
from pathlib import Path
import torch
from rejoinder.training.workers import kept_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

size = 2**28
before = resident()
with kept_memory():
    torch.ones(size // 4)
    kept, first = resident() - before, faults()
    torch.ones(size // 4 - 1_024)  # room for the alignment of tensors
    again, grown = faults() - first, resident() - before
print(json.dumps([kept / size, again * resource.getpagesize() / size, grown / size,
    (resident() - before) / size]))
"""
"""Prints what was kept after a tensor, faulted in for the next one, held then, and left at the end,
each as a share of the tensor. It needs a new process: other tests leave free memory."""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_memory_is_kept_for_the_next_tensor_and_given_back_at_the_end():
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    kept, again, grown, left = json.loads(run.stdout)
    assert kept > 0.9
    assert again < 0.05
    assert grown < 1.1
    assert left < 0.1


def test_seeding_is_that_of_torch():
    with own_torch_state(CPU, None):
        torch.manual_seed(1_000_003 * 2**31 + 5)
        expected = torch.rand(4)
        seed_generators(CPU, 1_000_003 * 2**31 + 5)
        assert torch.equal(torch.rand(4), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_generator_of_a_cuda_device_is_given_back():
    device = pick_device("cuda")
    state = torch.cuda.get_rng_state(device)
    with own_torch_state(device, None):
        seed_generators(device, 3)
        first = torch.rand(4, device=device)
        torch.manual_seed(3)
        assert torch.equal(torch.rand(4, device=device), first)
    assert torch.equal(torch.cuda.get_rng_state(device), state)


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match="auto, cpu or cuda; got 'tpu'"):
        pick_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device"):
            pick_device("cuda")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo")
def test_auto_precision_is_bfloat16_only_where_the_processor_multiplies_faster_in_it():
    told = Path("/proc/cpuinfo").read_text("utf-8")
    by_vectors = "avx512_bf16" in told and "GenuineIntel" not in told
    assert multiplies_in_bfloat16(CPU) == ("amx_bf16" in told or by_vectors)
