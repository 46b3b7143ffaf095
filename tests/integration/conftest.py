"""Fixtures of the integration tests. Nothing is imported here that some environment lacks."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def serve() -> Iterator[object]:
    """Starts `rejoinder serve` on a free port; returns its address."""
    processes = []

    def start(*words: object, program: Path | None = None, **variables: str) -> str:
        process = subprocess.Popen(
            [
                program or Path(sys.executable).with_name("rejoinder"),
                "serve",
                "--port",
                "0",
                *map(str, words),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        processes.append(process)
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address, line + process.stderr.read()
        return address[0]

    yield start
    for process in processes:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()
