"""Bugzilla: bugs with comments, as XML of the page of a bug or JSON of its interface."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.rows import (
    FAULTS,
    Shape,
    documents,
    first_shapes,
    id_of,
    json_members,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
    xml_files,
    xml_items,
)

_BUGS = ("bugs.item", "item", "")
_BUG = {"id", "summary", "product", "creator"}
_COMMENT = {"bug_id", "creator", "text", "is_private"}
_ANSWERS = re.compile(r"^\(In reply to (?:.{1,100} from )?comment #(\d{1,6})\)\s*", re.MULTILINE)
_UNREAD = re.compile(r"^>.*\n?|^Created attachment \d+(?: \[details\])?\s*\n?", re.MULTILINE)
_BY_BUGZILLA = re.compile(r"\A\*\*\* .* \*\*\*\Z")
_ZONES = {"PST": "-08:00", "PDT": "-07:00", "EST": "-05:00", "EDT": "-04:00"} | {
    "CET": "+01:00",
    "CEST": "+02:00",
    "GMT": "+00:00",
}
"""Names of zones, as versions before 4 write them."""
_BOT = re.compile(r"bot@|@bots\.")


@dataclass
class _Bug:
    """What is known of a bug, apart from its comments."""

    summary: str
    product: str
    creator: str = ""
    time: float | None = None
    has_comments: bool = False


def _recognises(files: Files) -> bool:
    return bool(xml_files(files, b"<bugzilla")) or any(
        path_of(keys, _BUGS, _BUG) is not None or _has_comments(keys)
        for keys in first_shapes(files, "bug")
    )


def _has_comments(keys: Shape) -> bool:
    """Whether a document has lists of comments by the number of their bug."""
    return any(
        re.fullmatch(r"bugs\.\d+\.comments\.item", path) and found >= _COMMENT
        for path, found in keys.items()
    )


def _read(files: Files) -> Iterator[Item]:
    bugs: dict[str, _Bug] = {}
    for name in documents(files):
        if (path := path_of(shape(files, name), _BUGS, _BUG)) is not None:
            yield from _known(files, name, path, bugs)
    for name in xml_files(files, b"<bugzilla"):
        yield from _page(files, name)
    for name in documents(files):
        keys = shape(files, name)
        if any(re.match(r"bugs\.\d+\Z", path) for path in keys):
            with files.open(name) as file:
                found = enumerate(json_members(file, "bugs", files.where(name)), 1)
                for number, (bug, value) in found:
                    yield from _of_bug(name, number, bug, value, bugs)
    for bug, known in bugs.items():
        if not known.has_comments:
            yield Message(
                id=bug,
                thread=bug,
                author=known.creator,
                time=known.time,
                text=known.summary,
                source=known.product,
            )


def _known(files: Files, name: str, path: str, bugs: dict[str, _Bug]) -> Iterator[Item]:
    for number, row in rows(files, name, path):
        try:
            creator = (row.get("creator_detail") or {}).get("real_name") or row.get("creator")
            bugs[id_of(row)] = _Bug(
                str(row["summary"] or ""),
                str(row["product"]),
                str(creator or ""),
                seconds(row.get("creation_time")),
            )
        except FAULTS as error:
            yield no_message(name, number, "Bugzilla", error)


def _of_bug(
    name: str, number: int, bug: str, value: Any, bugs: Mapping[str, _Bug]
) -> Iterator[Item]:
    known = bugs.get(bug, _Bug("", "bugzilla"))
    try:
        comments = list_of(value["comments"])
    except FAULTS as error:
        yield no_message(name, number, "Bugzilla", error)
        return
    known.has_comments = bool(comments)
    yield from _comments(name, number, bug, known, comments)


def _page(files: Files, name: str) -> Iterator[Item]:
    for number, bug in xml_items(files, name, "bug"):
        known = _Bug(bug.findtext("short_desc") or "", bug.findtext("product") or "bugzilla")
        comments = [_as_json(comment) for comment in bug.iter("long_desc")]
        if key := (bug.findtext("bug_id") or "").strip():
            yield from _comments(name, number, key, known, comments)
        else:
            yield no_message(name, number, "Bugzilla")


def _zone(name: re.Match[str]) -> str:
    return _ZONES.get(name[0], name[0])


def _as_json(comment: ElementTree.Element) -> dict[str, Any]:
    who = comment.find("who")
    named = None if who is None else who.get("name") or who.text
    return {
        "id": comment.findtext("commentid"),
        "creator": named or "",
        "time": re.sub(r"[A-Z]{3,4}\Z", _zone, (comment.findtext("bug_when") or "").strip()),
        "text": comment.findtext("thetext") or "",
        "is_private": comment.get("isprivate") == "1",
    }


def _comments(name: str, number: int, bug: str, known: _Bug, comments: list[Any]) -> Iterator[Item]:
    ids: list[str] = []
    for position, row in enumerate(comments):
        try:
            ids.append(f"{bug}/{id_of(row) if row.get('id') is not None else position}")
            text, author = row["text"].replace("\r\n", "\n"), str(row.get("creator") or "")
            answers = _ANSWERS.search(text)
            answered = int(answers[1]) if answers else position
            text = _UNREAD.sub("", _ANSWERS.sub("", text)).strip()
            yield Message(
                id=ids[-1],
                parent=ids[answered] if answered < len(ids) - 1 else None,
                thread=bug,
                author=author,
                time=seconds(row.get("time") or row.get("creation_time")),
                text=f"{known.summary}\n{text}".strip() if position == 0 else text,
                source=known.product,
                is_bot=_BOT.search(author) is not None,
                is_system=_BY_BUGZILLA.match(text) is not None,
                is_private=bool(row.get("is_private")),
            )
        except FAULTS as error:
            yield no_message(name, number, "Bugzilla", error)


BUGZILLA = ExportFormat(
    "bugzilla",
    "Bugzilla (bugs with comments, XML or JSON)",
    "https://bugzilla.readthedocs.io/en/latest/api/core/v1/comment.html",
    _recognises,
    _read,
    knows_replies=False,
)
