"""Small made-up exports, a module for each format, and what readers must find in them.

A module has:

- `FILES`: content by name; strings are UTF-8, anything else but bytes is written as JSON.
- `MESSAGES`: the messages in the order in which they are read.
- `BROKEN`: files that replace some of `FILES`, in which one message or more is malformed, but the
  rest is as before.
- `EMPTY`: an export without a message.
- `REAL`: number of messages, and of them of bots, of the system and of those with a parent, by the
  path of a real export.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rejoinder.exports.base import Message

_EIGHT = 1709280000.0
"""Eight o'clock."""


def write(files: Mapping[str, Any], folder: Path) -> Path:
    """Writes files into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def message(key: str, text: str, author: str, minute: int, **others: Any) -> Message:
    """A message so many minutes after eight; its key begins with its thread, as in `12/3`."""
    fields = {"thread": key.partition("/")[0], **others}
    return Message(id=key, text=text, author=author, time=_EIGHT + 60 * minute, **fields)
