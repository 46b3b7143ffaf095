"""Fixtures that several rooms share."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# a job in the background ignores SIGINT, and so would everything that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)


def _data() -> Path:
    return Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of the real data, with the reason, where it is absent."""
    if _data().is_dir():
        return
    reason = f"the real data is not here: {_data()} (set REJOINDER_DATA to its folder)"
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real data; use it in tests marked `shared_data`."""
    return _data()


@pytest.fixture(scope="session")
def small_dump() -> Path:
    """The made-up dump that comes with the project."""
    return ROOT / "examples" / "small.jsonl"


@pytest.fixture(scope="session")
def small_pairs(small_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its pairs, split 80/10/10."""
    from rejoinder.corpus.extract import extract

    out = tmp_path_factory.mktemp("small") / "pairs"
    extract(small_dump, out, split=(80.0, 10.0, 10.0))
    return out
