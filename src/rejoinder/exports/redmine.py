"""Redmine: issues with their journals, as its interface gives them."""

import re
from collections.abc import Iterator
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import (
    FAULTS,
    documents,
    first_shapes,
    id_of,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_PATHS = ("issues.item", "issue", "item.issue", "item", "")
_ISSUE = ({"id", "tracker", "subject"}, {"id", "tracker", "journals"})
_QUOTED = re.compile(r"\A[^\n]{1,100}#note-(\d{1,4})\)?:?\s*\n(?=>)")
"""Matches "Ann wrote in #note-3:" in any language, before the lines that it quotes."""


def _recognises(files: Files) -> bool:
    return any(path_of(keys, _PATHS, *_ISSUE) is not None for keys in first_shapes(files, "issue"))


def _read(files: Files) -> Iterator[Item]:
    for name in documents(files):
        path = path_of(shape(files, name), _PATHS, *_ISSUE)
        for number, row in rows(files, name, path) if path is not None else ():
            yield from _issue(name, number, row)


def _issue(name: str, number: int, row: Any) -> Iterator[Item]:
    try:
        issue, project = id_of(row), row.get("project") or {}
        source = str(project.get("name") or project.get("id") or "redmine")
        journals = list_of(row.get("journals"))
        subject = str(row.get("subject") or "").strip()
        yield Message(
            id=issue,
            thread=issue,
            author=_name_of(row.get("author")),
            time=seconds(row.get("created_on")),
            text="\n".join(filter(None, (subject, _text(row.get("description"))))),
            source=source,
            is_private=bool(row.get("is_private")),
        )
    except FAULTS as error:
        yield no_message(name, number, "Redmine", error)
        return
    ids: list[str] = []
    for journal in journals:
        try:
            notes = journal.get("notes") or ""
            quoted = _QUOTED.match(notes)
            position = int(quoted[1]) if quoted else 0
            ids.append(f"{issue}/{id_of(journal)}")
            yield Message(
                id=ids[-1],
                parent=ids[position - 1] if 0 < position < len(ids) else None,
                thread=issue,
                author=_name_of(journal.get("user")),
                time=seconds(journal.get("created_on")),
                text=_text(_QUOTED.sub("", notes)),
                source=source,
                is_system=not notes,
                is_private=bool(journal.get("private_notes") or row.get("is_private")),
            )
        except FAULTS as error:
            yield no_message(name, number, "Redmine", error)


def _name_of(user: Any) -> str:
    user = user or {}
    return str(user.get("name") or user.get("id") or "")


def _text(text: str | None) -> str:
    return markdown_text((text or "").replace("\r\n", "\n"), html=True)


REDMINE = ExportFormat(
    "redmine",
    "Redmine (issues with journals, JSON of its interface)",
    "https://www.redmine.org/projects/redmine/wiki/Rest_Issues",
    _recognises,
    _read,
    knows_replies=False,
)
