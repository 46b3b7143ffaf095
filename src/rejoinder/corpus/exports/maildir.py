"""Maildir: a file for each mail, as mail servers keep them; also `.eml` files and MH folders."""

import re
from collections.abc import Iterator
from itertools import islice

from rejoinder.corpus.exports.base import ExportFormat, Item
from rejoinder.corpus.exports.by_time import by_time
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.mail import HEADER, LARGEST, Mails

_MAIL = re.compile(
    r"(?:(.*)/)?(?:(?<=cur/)[^/]+|(?<=new/)[^/]+|\d{9,10}\.[^/]+|[^/]+\.eml|\d+\.?)", re.IGNORECASE
)
"""Matches the name of a mail, and its folder."""
_ARRIVED = re.compile(r"(?:.*/)?(\d{9,10})\.[^/]*")
_TRIED = 20
_SENT_BY = re.compile(rb"^(?:From|Date|Message-ID|Received|Return-Path):", re.I | re.MULTILINE)


def _recognises(files: Files) -> bool:
    mails = (name for name in files.names if _MAIL.fullmatch(name))
    return any(_is_mail(files.head(name).lstrip()) for name in islice(mails, _TRIED))


def _is_mail(head: bytes) -> bool:
    return bool(HEADER.match(head) and _SENT_BY.search(head))


def _read(files: Files) -> Iterator[Item]:
    yield from by_time(_items(files))


def _items(files: Files) -> Iterator[Item]:
    mails = Mails()
    for name in files.names:
        found = _MAIL.fullmatch(name)
        if found is None:
            continue
        with files.open(name) as file:
            content = file.read(LARGEST)
        arrived = _ARRIVED.fullmatch(name)
        time = float(arrived[1]) if arrived else None
        source = re.sub(r"(?:^|/)(?:cur|new)$", "", found[1] or "").lstrip(".") or "INBOX"
        if content.strip():
            yield from mails.items(content, source, name, 1, time)


MAILDIR = ExportFormat(
    "maildir",
    "Maildir (mail)",
    "https://cr.yp.to/proto/maildir.html",
    _recognises,
    _read,
)
