"""The commands of `benchmarks/faults.py`, and what they read."""

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


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A dump, pairs, a run, models, labelled data and indexes."""
    spec = spec_from_file_location("faults_benchmark", BENCHMARKS / "faults.py")
    faults = module_from_spec(spec)
    sys.modules[spec.name] = faults  # dataclasses look their module up
    spec.loader.exec_module(faults)
    base = tmp_path_factory.mktemp("faults").resolve()
    faults.prepare(base)
    return Prepared(faults, base)
