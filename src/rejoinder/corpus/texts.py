"""Reads the texts of a path: lines, rows of a table, messages of an export, or replies of pairs.

All commands that read texts use this module.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rejoinder.errors import InputError
from rejoinder.io.files.storage import is_database
from rejoinder.io.formats.compression import head_of
from rejoinder.io.formats.texts import KEYS, read_texts

if TYPE_CHECKING:
    from rejoinder.corpus.core_text import Repeated
    from rejoinder.exports.base import ExportFormat, Message
    from rejoinder.exports.files import Files

_QUESTION = re.compile(r"""[?؟]['")\]]*(?=\s|$)|？""")
"""Matches a question mark, except within an address."""
_PAIRS = "manifest.json"
"""File by which a folder of pairs is recognised."""
_EXPLORED = "index/index.json"
"""File by which a folder of `rejoinder explore` is recognised."""
_HEAD = 1 << 14
_LINES = 500
_MARKS = b"PK", b"[", b"{", b"<"
"""First bytes of zip archives, JSON, XML and HTML, and of lines in some chats."""
_MAIL = re.compile(
    rb"(?:From .*\n>?)?[!-9;-~]+:[ \t\r\n](?:.*\n)*?(?:From|Date|Message-ID|Received):", re.I
)
"""Matches the headers of a mail, and the line above them in a mailbox."""
_CHAT = re.compile(rb"\W{0,20}\d(?:.{4,40}?\d[:.]\d\d|\d?:\d\d.{2,16}\d[./-]\d)")
"""Matches a line that begins with a date and a time of day, in either order."""
_TABLE = re.compile(rb"(?:[^\n,;\t]+[,;\t](?=\S)){2}")
"""Matches a line that begins with three table cells, without a space after separators."""
_LOG = re.compile(rb"\s*(?:[\[(*=<>-]|\d\d?:\d\d|\d{4}-\d\d-\d\d|[A-Z][a-z]{2} +\d|Session )")
"""Matches a line of a log: it begins with a time, a date, or a mark for events."""


class Entry(NamedTuple):
    """A text to search or to encode."""

    id: str | None
    """None: no id. An index then assigns the next number not yet used in it."""
    text: str
    about: Mapping[str, Any] = MappingProxyType({})
    """The metadata of a message, by `KEYS`. Empty for other texts."""
    said: str | None = None
    """A message without lines that many messages repeat; the core of it (`core_of`) is encoded.
    None: the full text is encoded."""

    @property
    def encoded(self) -> str:
        """The text to encode."""
        if self.said is None:
            return self.text
        from rejoinder.corpus.core_text import core_of  # only messages need these rules

        return core_of(self.said, self.about.get("author", ""))

    @property
    def known(self) -> Mapping[str, Any]:
        """The id and metadata of a message; empty for other texts."""
        return {"id": self.id, **self.about} if self.about else {}


def is_question(text: str) -> bool:
    """Returns whether a text asks something, judged by question marks.

    >>> is_question("Anybody there? Hello"), is_question("See https://a.example/?q=1")
    (True, False)
    """
    return _QUESTION.search(text) is not None


def entries_of(
    path: Path,
    columns: str | None = None,
    on_read: Callable[[int], None] = lambda _count: None,
    on_left_out: Callable[[str], None] = lambda _reason: None,
    most: int | None = None,
) -> Iterator[Entry]:
    """Yields the texts of a file (`io.formats.texts`), messages of an export, or replies of pairs.

    Messages that extraction would drop are left out.

    Args:
        path: A file or a folder.
        columns: See `read_texts`. If given, the file is not read as an export.
        on_read: Called with the bytes of each read of a file of texts.
        on_left_out: Called for each message that is left out, with the reason
            (`exports.base.why_not`) or `malformed`.
        most: Most bytes of an export's content to read; see `exports.files.opened`.

    Raises:
        InputError: the path can't be read, or has no texts. The message names it.
        MissingExtraError: a package for this format is missing.
    """
    if path.is_dir():
        if columns is not None:
            raise InputError(f"`columns` is for a file; {path} is a folder.")
        if (path / _PAIRS).is_file():
            return _replies(path)
    if columns is None and may_be_export(path):
        from rejoinder.exports import exports_of

        if exports := exports_of(path, most):
            messages = (messages_of(path, one, on_left_out, most) for one in exports)
            return refuse_empty(chain.from_iterable(messages), path, exports)
    if path.is_dir():
        inside = path / _EXPLORED
        raise InputError(
            f"{path} is neither a folder of pairs nor an export in a known format; name "
            f"{f'its index, {inside.parent}' if inside.is_file() else 'a file'}."
        )
    return (Entry(*text) for text in read_texts(path, columns, on_read))


def may_be_export(path: Path) -> bool:
    """Returns whether to try all formats of exports: importing them takes 0.1 seconds."""
    if is_database(path):
        return True
    if not path.is_file():
        return path.is_dir()
    return looks_exported(head_of(path, _HEAD))


def looks_exported(head: bytes) -> bool:
    r"""Returns whether the start of a file looks like an export rather than lines of prose.

    >>> looks_exported(b"How are you?\nFine."), looks_exported(b"3/1/24, 9:59 PM - Ann: Hello")
    (False, True)
    """
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PAR1"):  # Parquet
        return False
    if b"\0" in head or head.startswith(_MARKS):
        return True
    if any(pattern.match(head) for pattern in (_MAIL, _CHAT, _TABLE)):
        return True
    lines = [line for line in islice(head.splitlines(), _LINES) if line.strip()]
    return sum(bool(_LOG.match(line)) for line in lines) > len(lines) / 2


def refuse_empty(
    messages: Iterator[Entry], path: Path, exports: Sequence["ExportFormat"]
) -> Iterator[Entry]:
    """Yields the messages of an export.

    Raises:
        InputError: there are none.
    """
    first = next(messages, None)
    if first is None:
        raise InputError(
            f"{path} is an export of {' and '.join(one.title for one in exports)} without any "
            "message to read; messages that are private, empty, or by bots or the program are "
            "left out."
        )
    yield from chain([first], messages)


def messages_of(
    path: Path,
    export: "ExportFormat",
    on_left_out: Callable[[str], None],
    most: int | None,
    on_export: Callable[[str, "Files"], None] = lambda _title, _files: None,
) -> Iterator[Entry]:
    """Yields the messages of an export, read by its formats (`exports.exports_of`).

    `on_export` is called with the format's title and the files, after the last message.
    """
    from rejoinder.corpus.core_text import Repeated
    from rejoinder.exports.base import Message, why_not
    from rejoinder.exports.files import opened

    repeated = Repeated()
    with opened(path, most) as files:
        for item in export.read(files):
            reason = why_not(item) if isinstance(item, Message) else "malformed"
            if isinstance(item, Message) and reason is None:
                yield entry_of(item, repeated)
            elif reason is not None:
                on_left_out(reason)
        on_export(export.title, files)


def entry_of(message: "Message", repeated: "Repeated") -> Entry:
    """Returns a message of an export with its metadata."""
    facts = (
        message.author, message.time, message.source, message.thread, message.parent, message.link,
        message.title,
    )  # fmt: skip
    about = {name: fact for name, fact in zip(KEYS, facts, strict=True) if fact not in (None, "")}
    said = repeated.seen(message.text).cut(message.text)
    return Entry(message.id, message.text, about, said)


def _replies(folder: Path) -> Iterator[Entry]:
    """Yields the distinct replies in all splits of a folder of pairs, with the first comment's id.

    Memory holds a hash of each reply.

    Raises:
        InputError: the folder has no usable pairs.
    """
    from rejoinder.corpus.manifest import SPLITS
    from rejoinder.corpus.writer import open_pairs  # needs Polars, which files of texts don't
    from rejoinder.io.files.hashed import blake2b_number

    pairs = open_pairs(folder)
    seen: set[int] = set()
    for split in SPLITS:
        for block in pairs.blocks(split):
            for name, text in pairs.read(block, ["response_id", "response"]).iter_rows():
                key = blake2b_number(text.encode())
                if key not in seen:
                    seen.add(key)
                    yield Entry(name, text)
