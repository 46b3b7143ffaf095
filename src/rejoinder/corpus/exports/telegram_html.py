"""Pages of a chat as Telegram Desktop exports them by default: `messages.html` and its parts."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rejoinder.corpus.exports.base import Item, Message
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.markup import parsed, plain_text
from rejoinder.corpus.exports.rows import FAULTS, no_message

_ENDING = ".html"
_LOOKED_AT = 20
_LARGEST = 1 << 26
"""A page has a thousand messages."""
_MARK = b"<title>Exported Data</title>"
_NUMBER = re.compile(r"go_to_message(\d+)")
_PART = re.compile(r"messages(\d*)\.html")
_VIA = re.compile(r"(?<!\s)\s+via @\w+$")
_DATE = re.compile(r"(\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d)(?: UTC([+-]\d\d:?\d\d)?)?")


def is_in_pages(files: Files) -> bool:
    """Tells whether an export has pages of messages."""
    names = sorted(_pages(files), key=lambda name: not _PART.search(name))
    return any(_is_page(files, name) for name in names[:_LOOKED_AT])


def _pages(files: Files) -> list[str]:
    return [name for name in files.names if name.lower().endswith(_ENDING)]


def _is_page(files: Files, name: str) -> bool:
    head = files.head(name)
    return _MARK in head and b'class="message ' in head


def pages(files: Files) -> Iterator[Item]:
    """Yields the messages of all pages, those of a chat in their order."""
    names = [name for name in _pages(files) if _is_page(files, name)]
    for name in sorted(names, key=_place):
        yield from _page(files, name)


def _place(name: str) -> tuple[str, int]:
    """Returns what sorts `messages10.html` after `messages9.html`."""
    part = _PART.search(name)
    return name.rpartition("/")[0], int(part[1] or 1) if part else 0


def _page(files: Files, name: str) -> Iterator[Item]:
    with files.open(name) as file:
        tree = parsed(file.read(_LARGEST).decode("utf-8", "replace"))
    folder = name.rpartition("/")[0]
    chat = _text(tree, ".page_header .text") or folder or files.path.stem
    author = ""
    for number, node in enumerate(tree.css("div.message"), 1):
        try:
            if not (node.attributes["id"] or "").startswith("message-"):  # else a date
                author = _author(node) or author
                yield _message(node, author, chat, folder or chat)
        except FAULTS as error:
            yield no_message(name, number, "Telegram", error)


def _author(node: Any) -> str:
    return _VIA.sub("", _text(node, "div.body > .from_name"))


def _message(node: Any, author: str, chat: str, place: str) -> Message:
    is_system = "service" in (node.attributes["class"] or "").split()
    date, answered = node.css_first("div.date"), node.css_first("div.reply_to a")
    number = _NUMBER.search(answered.attributes.get("href") or "") if answered else None
    return Message(
        id=f"{place}/{node.attributes['id'].removeprefix('message')}",
        parent=f"{place}/{number[1]}" if number else None,
        author="" if is_system else author,
        time=_time(date.attributes["title"]) if date else None,
        text=_text(node, "div.body" if is_system else "div.text"),
        source=chat,
        is_system=is_system,
    )


def _text(node: Any, selector: str) -> str:
    found = node.css_first(selector)
    return plain_text(found.html, without="blockquote, .details .details") if found else ""


def _time(title: str) -> float:
    found = _DATE.fullmatch(title.strip())
    if found is None:
        raise ValueError(title)
    time = datetime.strptime(f"{found[1]} {found[2] or '+0000'}", "%d.%m.%Y %H:%M:%S %z")
    return time.timestamp()
