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
    """Starts `rejoinder serve`, or `explore`, on a free port; returns its address."""
    processes = []

    def start(
        *words: object, program: Path | None = None, command: str = "serve", **variables: str
    ) -> str:
        process = subprocess.Popen(
            [
                program or Path(sys.executable).with_name("rejoinder"),
                command,
                "--port",
                "0",
                *map(str, words),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        processes.append(process)
        printed = ""
        for line in process.stderr:
            printed += line
            if address := re.search(r"http://\S+", line):
                return address[0]
        raise AssertionError(printed)

    yield start
    for process in processes:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()
