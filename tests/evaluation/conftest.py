"""Fixtures for the tests of evaluation."""

from contextlib import suppress

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """One thread per product: the networks of tests are so small that threads only wait."""
    with suppress(ImportError):
        import torch  # noqa: F401 -- limits act on libraries that are loaded
    with threadpool_limits(1):
        yield
