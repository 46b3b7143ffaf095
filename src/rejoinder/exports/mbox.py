"""mbox: a file of mails, as Thunderbird, Google and the archives of lists keep them.

Maildir: a file for each mail, as mail servers keep them; also `.eml` files and MH folders.

A mail alone is known by its headers, whatever it is called.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import IO

from rejoinder.exports.base import ExportFormat, Item, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.mail import HEADER, LARGEST, Mails, date_seconds

_BEGINS = re.compile(rb"(?:\A|\n)From [^\n]*\n>?[!-9;-~]+:[ \t\r\n]")
_DATE = re.compile(rb"\w{3},? {1,3}(?:\w{3} {1,3}\d\d?|\d\d? {1,3}\w{3}) .{0,40}\d\d:\d\d.*")
_ESCAPED = re.compile(rb">+From ")
_MONTH = re.compile(r"\d{4}-?(?:[A-Z][a-z]+|\d\d|q[1-4])?")
"""Matches the names of files that archives write for a month, a quarter or a year."""
_LINE = 1 << 16
_TRIED = 20


def _items(files: Files) -> Iterator[Item]:
    mails = Mails()
    for name in files.names:
        if not _BEGINS.search(files.head(name)):
            continue
        with files.open(name) as file:
            for number, (time, content) in enumerate(_contents(file), 1):
                yield from mails.items(content, _source(files, name), name, number, time)


def _source(files: Files, name: str) -> str:
    folder, _, file = name.rpartition("/")
    stem = file.partition(".")[0] or file
    if not _MONTH.fullmatch(stem) and stem != "mbox":
        return stem
    return (folder.rpartition("/")[2] or files.title).removesuffix(".mbox")


def _contents(file: IO[bytes]) -> Iterator[tuple[float | None, bytes]]:
    """Yields when a mail arrived, and the mail, without what is above the limit of its size."""
    beginning = b""
    lines: list[bytes] = []
    size, before = 0, b"\n"
    for line, following in pairwise(chain(iter(lambda: file.readline(_LINE), b""), [b""])):
        if _is_beginning(before, line, following):
            if beginning:
                yield _time(beginning), b"".join(lines)
            beginning, lines, size = line, [], 0
        elif beginning and size < LARGEST:
            size += len(line)
            lines.append(line[1:] if _ESCAPED.match(line) else line)
        before = line
    if beginning:
        yield _time(beginning), b"".join(lines)


def _is_beginning(before: bytes, line: bytes, following: bytes) -> bool:
    """Whether a line is above a mail: texts have lines that begin with From, too."""
    if not line.startswith(b"From ") or not HEADER.match(following.removeprefix(b">")):
        return False
    return not before.strip() or (before.endswith(b"\n") and bool(_DATE.search(line)))


def _time(line: bytes) -> float | None:
    found = _DATE.search(line)
    return date_seconds(found[0].decode("ascii", "replace")) if found else None


MBOX = ExportFormat(
    "mbox",
    "mbox (mail)",
    "https://www.rfc-editor.org/rfc/rfc4155",
    lambda files: any(_BEGINS.match(files.head(one).lstrip()) for one in files.names[:_TRIED]),
    lambda files: by_time(_items(files)),
)


_MAIL = re.compile(
    r"(?:(.*)/)?(?:(?<=cur/)[^/]+|(?<=new/)[^/]+|\d{9,10}\.[^/]+|[^/]+\.eml|\d+\.?)", re.IGNORECASE
)
"""Matches the name of a mail, and its folder."""
_ARRIVED = re.compile(r"(?:.*/)?(\d{9,10})\.[^/]*")
_HEADERS = re.compile(rb"(?:[!-9;-~]+:.*\n(?:[ \t].*\n)*)+\r?\n")
"""Matches the headers of a mail, and the blank line after them."""
_SENT_BY = re.compile(rb"^(?:From|Date|Message-ID|Received|Return-Path):", re.I | re.MULTILINE)


def _is_maildir(files: Files) -> bool:
    mails = islice(filter(_MAIL.fullmatch, files.names), _TRIED)
    heads = (files.head(name).lstrip() for name in mails)
    return any(HEADER.match(one) and _SENT_BY.search(one) for one in heads) or _is_alone(files)


def _is_alone(files: Files) -> bool:
    """Returns whether the only file begins with the headers that every mail has."""
    headers = _HEADERS.match(files.first.lstrip())
    return headers is not None and {b"from:", b"date:"} <= {
        name.lower() for name in _SENT_BY.findall(headers[0])
    }


def _maildir_items(files: Files) -> Iterator[Item]:
    mails, is_alone = Mails(), _is_alone(files)
    for name in files.names:
        found = _MAIL.fullmatch(name)
        if found is None and not is_alone:
            continue
        with files.open(name) as file:
            content = file.read(LARGEST)
        arrived = _ARRIVED.fullmatch(name)
        time = float(arrived[1]) if arrived else None
        folder = (found and found[1]) or ""
        source = re.sub(r"(?:^|/)(?:cur|new)$", "", folder).lstrip(".") or "INBOX"
        if content.strip():
            yield from mails.items(content, source, name, 1, time)


MAILDIR = ExportFormat(
    "maildir",
    "Maildir (mail)",
    "https://cr.yp.to/proto/maildir.html",
    _is_maildir,
    lambda files: by_time(_maildir_items(files)),
)
