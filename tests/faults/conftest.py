"""The commands of `benchmarks/faults.py`, and what they read; `benchmarks/changes.py`."""

import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@dataclass(frozen=True)
class Prepared:
    """The benchmark as a module, and the folder of what its commands read."""

    faults: ModuleType
    base: Path


def benchmark(name: str) -> ModuleType:
    spec = spec_from_file_location(f"{name}_benchmark", BENCHMARKS / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def changes() -> ModuleType:
    return benchmark("changes")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A dump, pairs, a run, models, labelled data and indexes."""
    faults = benchmark("faults")
    base = tmp_path_factory.mktemp("faults").resolve()
    faults.prepare(base)
    return Prepared(faults, base)
