"""Texts of a file that a client sends. No file may take the server's memory or time."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from rejoinder.corpus.texts import Entry, entries_of
from rejoinder.errors import RejoinderError
from rejoinder.io.files.places import scratch_folder
from rejoinder.serve.errors import refused
from rejoinder.serve.settings import MOST_CHARACTERS, ServerSettings

_NOT_IN_NAMES = re.compile(r"[^\w .#@()+-]|^[. ]+")
_LONGEST_NAME = 100
_EXPANDED = 8
"""Bytes of an export's content for each byte that a request may have."""
_TABLE = ".parquet"
"""Kilobytes of such a table can hold a billion rows."""


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


class FileReader:
    """Reads files, one at a time, next to the encoder's work."""

    def __init__(self, settings: ServerSettings) -> None:
        self._most_texts = settings.max_texts
        self._most_bytes = _EXPANDED * settings.max_body_bytes
        self._reading = asyncio.Lock()

    async def read(self, name: str, content: bytes) -> SentTexts:
        """Returns the first texts of a file.

        Raises:
            RequestError: it can't be read, is an export that holds too many bytes, or its texts are
                too long.
        """
        async with self._reading:
            return await run_in_threadpool(self._read, name, content)

    def _read(self, name: str, content: bytes) -> SentTexts:
        name = Path(name.replace("\\", "/")).name[-_LONGEST_NAME:]
        name = _NOT_IN_NAMES.sub("", name) or "file"
        if _TABLE in Path(name).suffixes:
            raise refused("content", f"{name} is a table that `rejoinder search --columns` reads.")
        left_out, read, size = list[str](), list[Entry](), 0
        with scratch_folder() as folder:
            path = folder / name
            path.write_bytes(content)
            try:
                for entry in entries_of(path, on_left_out=left_out.append, most=self._most_bytes):
                    read.append(entry)
                    size += len(entry.text)
                    if size > MOST_CHARACTERS or len(read) > self._most_texts:
                        break
            except RejoinderError as error:  # without the path
                raise refused("content", str(error).replace(f"{folder}/", "")) from None
        if size > MOST_CHARACTERS:
            raise refused(
                "content", f"the texts have more than {MOST_CHARACTERS:,} characters; cut {name}."
            )
        kept = read[: self._most_texts]
        texts = [SentText(one.id, one.text, one.core, {**one.about}) for one in kept]
        return SentTexts(texts, len(read) > len(kept), dict(Counter(left_out)))
