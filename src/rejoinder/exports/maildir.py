"""Maildir: a file for each mail, as mail servers keep them; also `.eml` files and MH folders.

A mail alone is known by its headers, whatever it is called.
"""

import re
from collections.abc import Iterator
from itertools import islice

from rejoinder.exports.base import ExportFormat, Item, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.mail import HEADER, LARGEST, Mails

_MAIL = re.compile(
    r"(?:(.*)/)?(?:(?<=cur/)[^/]+|(?<=new/)[^/]+|\d{9,10}\.[^/]+|[^/]+\.eml|\d+\.?)", re.IGNORECASE
)
"""Matches the name of a mail, and its folder."""
_ARRIVED = re.compile(r"(?:.*/)?(\d{9,10})\.[^/]*")
_TRIED = 20
_HEADERS = re.compile(rb"(?:[!-9;-~]+:.*\n(?:[ \t].*\n)*)+\r?\n")
"""Matches the headers of a mail, and the blank line after them."""
_SENT_BY = re.compile(rb"^(?:From|Date|Message-ID|Received|Return-Path):", re.I | re.MULTILINE)


def _recognises(files: Files) -> bool:
    mails = (name for name in files.names if _MAIL.fullmatch(name))
    return any(_is_mail(files.head(name).lstrip()) for name in islice(mails, _TRIED)) or _is_alone(
        files
    )


def _is_mail(head: bytes) -> bool:
    return bool(HEADER.match(head) and _SENT_BY.search(head))


def _is_alone(files: Files) -> bool:
    """Returns whether the only file begins with the headers that every mail has."""
    headers = _HEADERS.match(files.first.lstrip())
    return headers is not None and {b"from:", b"date:"} <= {
        name.lower() for name in _SENT_BY.findall(headers[0])
    }


def _read(files: Files) -> Iterator[Item]:
    yield from by_time(_items(files))


def _items(files: Files) -> Iterator[Item]:
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
    _recognises,
    _read,
)
