"""Texts of a file that a client sends. No file may take the server's memory or time."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
from starlette.concurrency import run_in_threadpool

from rejoinder.io.files.places import scratch_folder
from rejoinder.serve import file_worker
from rejoinder.serve.errors import RequestError, refused
from rejoinder.serve.settings import MOST_CHARACTERS, ServerSettings

_NOT_IN_NAMES = re.compile(r"[^\w .#@()+-]|^[. ]+")
_LONGEST_NAME = 100
_EXPANDED = 8
"""Bytes of an export's content for each byte that a request may have."""
_SECONDS = 30
_TABLE = ".parquet"
"""Kilobytes of such a table can hold a billion rows."""


class FileReader:
    """Reads files, one at a time, in a process that starts with the first of them."""

    def __init__(self, settings: ServerSettings, seconds: int = _SECONDS) -> None:
        self.seconds = seconds
        """Most time for a file."""
        self._most_texts = settings.max_texts
        self._most_bytes = _EXPANDED * settings.max_body_bytes
        self._reading = asyncio.Lock()
        self._worker: subprocess.Popen[bytes] | None = None

    async def read(self, name: str, content: bytes) -> bytes:
        """Returns the first texts of a file, as the JSON of a `SentTexts`.

        Raises:
            RequestError: it can't be read, is an export that holds too many bytes, takes too long,
                or its texts are too long.
        """
        async with self._reading:
            return await run_in_threadpool(self._read, name, content)

    def close(self) -> None:
        """Ends the process, also while it reads."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.wait()

    def _read(self, name: str, content: bytes) -> bytes:
        name = Path(name.replace("\\", "/")).name[-_LONGEST_NAME:]
        name = _NOT_IN_NAMES.sub("", name) or "file"
        if _TABLE in Path(name).suffixes:
            raise refused("content", f"{name} is a table that `rejoinder search --columns` reads.")
        with scratch_folder() as folder:
            path = folder / name
            path.write_bytes(content)
            answer = self._answer(path)
        kind, told = answer[:1], answer[1:]
        if kind == file_worker.READ:
            return told
        if kind == file_worker.REFUSED:
            raise refused("content", json.loads(told))
        raise RuntimeError(json.loads(told))

    def _answer(self, path: Path) -> bytes:
        worker = self._worker
        if worker is None or worker.poll() is not None:
            worker = self._worker = _started()
        assert worker.stdin and worker.stdout  # noqa: S101, PT018 -- both are pipes
        asked = file_worker.Asked(
            str(path), self._most_texts, MOST_CHARACTERS, self._most_bytes, self.seconds
        )
        worker.stdin.write(msgspec.json.encode(asked) + b"\n")
        worker.stdin.flush()
        if answer := worker.stdout.readline():
            return answer
        if worker.wait() == -signal.SIGALRM:
            raise refused(
                "content",
                f"{path.name} takes more than {self.seconds} seconds to read; cut it, or read it "
                "with `rejoinder search`.",
            )
        raise RequestError(503, f"the process that read {path.name} was ended; send it again.")


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- nothing of a client is in it
        [sys.executable, "-P", "-m", file_worker.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for the server, which ends it
    )
