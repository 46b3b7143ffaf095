"""Ports of the loopback, for servers that tests start as processes."""

import socket
import subprocess
import time


def free_port() -> int:
    """Returns a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(running: "subprocess.Popen[bytes]", port: int, seconds: float) -> None:
    """Waits until a process that is starting listens at its port; fails if it ends before."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert running.poll() is None, f"the server ended with the status {running.returncode}"
            assert time.monotonic() < deadline, f"no server after {seconds} seconds"
            time.sleep(0.1)
        else:
            return
