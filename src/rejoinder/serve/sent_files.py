"""Reads texts of a file that a client sends, with limits on memory and time.

A separate process reads clients' files, so that the server survives whatever they contain.

It reads a JSON line for each file, `Asked`, and writes a line: a mark of the kind of answer, then
JSON. If it takes too long, the server ends it, even in the middle of a library call.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool

from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.errors import InputError, RejoinderError
from rejoinder.io.files.storage import scratch_folder
from rejoinder.serve.errors import RequestError, refused

if TYPE_CHECKING:
    from rejoinder.serve.server import ServerSettings

MOST_CHARACTERS = 32 << 20
"""Largest number of characters of all texts in an answer."""
_NOT_IN_NAMES = re.compile(r"[^\w .#@()+-]|^[. ]+")
_LONGEST_NAME = 100
_EXPANDED = 8
"""Allowed bytes of an export's content per byte that a request may have."""
_SECONDS = 30
_TABLE = ".parquet"
"""Such a table can have a billion rows in a few kilobytes."""


class FileReader:
    """Reads files, one at a time, in a process that is started for the first file."""

    def __init__(self, settings: "ServerSettings", seconds: int = _SECONDS) -> None:
        self.seconds = seconds
        """Time limit per file."""
        self._most_texts = settings.max_texts
        self._most_bytes = _EXPANDED * settings.max_body_bytes
        self._reading = asyncio.Lock()
        self._worker: subprocess.Popen[bytes] | None = None

    async def read(self, name: str, content: bytes) -> bytes:
        """Returns the first texts of a file, as the JSON of a `SentTexts`.

        Raises:
            RequestError: it can't be read, is an export with too much content, takes too long,
                or its texts are too long.
        """
        async with self._reading:
            return await run_in_threadpool(self._read, name, content)

    def close(self) -> None:
        """Ends the process, even while it reads."""
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
        if kind == READ:
            return told
        if kind == REFUSED:
            raise refused("content", json.loads(told))
        raise RuntimeError(json.loads(told))

    def _answer(self, path: Path) -> bytes:
        worker = self._worker
        if worker is None or worker.poll() is not None:
            worker = self._worker = _started()
        assert worker.stdin and worker.stdout  # noqa: S101, PT018 -- both are pipes
        asked = Asked(str(path), self._most_texts, self._most_bytes)
        timer, end = Timer(self.seconds, worker.kill), time.monotonic() + self.seconds
        timer.start()
        worker.stdin.write(msgspec.json.encode(asked) + b"\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
        timer.cancel()
        if answer:
            return answer
        worker.wait()
        if time.monotonic() >= end:
            said = f"{path.name} takes more than {self.seconds} seconds to read; cut it."
            raise refused("content", said)
        raise RequestError(503, f"the process that read {path.name} was ended; send it again.")


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- nothing of a client is in it
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for the server, which ends it
    )


READ, REFUSED, FAILED = b"+", b"-", b"!"
"""Marks: texts follow, a sentence with the reason for none, or a traceback."""


class Asked(msgspec.Struct):
    """A file to read, and its limits."""

    path: str
    texts: int
    """Largest number of texts to return."""
    bytes: int
    """Largest size of an export's content in bytes."""


@dataclass(frozen=True)
class SentText:
    """A line, a row or a message."""

    id: str | None
    text: str
    core: str | None
    """The part of a message to search and rank by, without a greeting; null: all of it."""
    about: Mapping[str, Any]
    """Of a message: `author`, `time`, `source`, `thread`, `answers`, `link`."""


@dataclass(frozen=True)
class SentTexts:
    """The texts of a file."""

    texts: list[SentText]
    more: bool
    """Whether the file has more texts than a request may have."""
    left_out: Mapping[str, int]
    """Number of messages that were left out, by reason."""


def main() -> None:
    """Answers until standard input ends, as it does with the server."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library may print
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=Asked)
        answers.write(_answer(asked) + b"\n")
        answers.flush()


def _answer(asked: Asked) -> bytes:
    try:
        return READ + msgspec.json.encode(_texts(asked))
    except RejoinderError as error:  # without the path
        told = str(error).replace(f"{Path(asked.path).parent}/", "")
        return REFUSED + json.dumps(told).encode()
    except Exception:
        return FAILED + json.dumps(traceback.format_exc()).encode()


def _texts(asked: Asked) -> SentTexts:
    """Returns the first texts of a file.

    Raises:
        InputError: the file can't be read, has too many bytes, or its texts are too long.
    """
    path = Path(asked.path)
    left_out, read, size = list[str](), list[Entry](), 0
    for entry in entries_of(path, on_left_out=left_out.append, most=asked.bytes):
        read.append(entry)
        size += len(entry.text)
        if size > MOST_CHARACTERS:
            raise InputError(f"more than {MOST_CHARACTERS:,} characters; cut {path.name}.")
        if len(read) > asked.texts:
            break
    kept = read[: asked.texts]
    texts = [
        SentText(one.id, one.text, one.encoded if one.said else None, {**one.about}) for one in kept
    ]
    return SentTexts(texts, len(read) > len(kept), dict(Counter(left_out)))


if __name__ == "__main__":
    main()
