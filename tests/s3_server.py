"""A server with the interface of S3, which tests start themselves."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ports import free_port, wait_for


@contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """Yields the address of an empty server, `http://HOST:PORT`; skips the test without moto.

    While it runs, the environment says how to reach it.
    """
    # of another version on the PATH, uploads in several parts fail (5.2.1)
    program = shutil.which("moto_server", path=Path(sys.prefix) / "tools" / "bin")
    if program is None:
        pytest.skip("moto_server is not installed; `make check` installs it into .venv/tools")
    port = free_port()
    with log.open("wb") as file:
        command = [program, "-H", "127.0.0.1", "-p", str(port)]
        running = subprocess.Popen(command, stdout=file, stderr=file)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(running, port, 120)
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)
            patch.setenv("AWS_ACCESS_KEY_ID", "tests")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            patch.setenv("AWS_ENDPOINT_URL", address)
            yield address
    finally:
        running.terminate()
        running.wait(120)


def check_keys(address: str, *, requests: str) -> None:
    """Lets a server check access keys after some requests, `inf` for never."""
    import httpx

    httpx.post(f"{address}/moto-api/reset-auth", content=requests).raise_for_status()
