"""The process that reads the files of clients: whatever one of them takes, the server goes on.

It reads a line of JSON for each file, `Asked`, and writes a line: a mark of what follows, and JSON.
Whoever is silent for too long is ended by the system, also in the middle of a library.
"""

import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.errors import InputError, RejoinderError

READ, REFUSED, FAILED = b"+", b"-", b"!"
"""Before the texts, before a sentence that says why there are none, and before a traceback."""


class Asked(msgspec.Struct):
    """A file to read, and its limits."""

    path: str
    texts: int
    """Most texts to return."""
    characters: int
    """Most characters of all texts."""
    bytes: int
    """Most bytes of an export's content."""
    seconds: int
    """Most time."""


@dataclass(frozen=True)
class SentText:
    """A line, a row or a message."""

    id: str | None
    text: str
    core: str | None
    """What search and rank should compare of a message, without a greeting; null: all of it."""
    about: Mapping[str, Any]
    """Of a message: `author`, `time`, `source`, `thread`, `answers`, `link`."""


@dataclass(frozen=True)
class SentTexts:
    """The texts of a file."""

    texts: list[SentText]
    more: bool
    """Whether the file has more texts than a request may have."""
    left_out: Mapping[str, int]
    """Number of messages that were left out, by the reason."""


def main() -> None:
    """Answers until standard input ends, with the server."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library may print
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line, type=Asked)
        signal.alarm(asked.seconds)
        answer = _answer(asked)
        signal.alarm(0)
        answers.write(answer + b"\n")
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
        InputError: it can't be read, holds too many bytes, or its texts are too long.
    """
    path = Path(asked.path)
    left_out, read, size = list[str](), list[Entry](), 0
    for entry in entries_of(path, on_left_out=left_out.append, most=asked.bytes):
        read.append(entry)
        size += len(entry.text)
        if size > asked.characters:
            raise InputError(
                f"the texts have more than {asked.characters:,} characters; cut {path.name}."
            )
        if len(read) > asked.texts:
            break
    kept = read[: asked.texts]
    texts = [SentText(one.id, one.text, one.core, {**one.about}) for one in kept]
    return SentTexts(texts, len(read) > len(kept), dict(Counter(left_out)))


if __name__ == "__main__":
    main()
