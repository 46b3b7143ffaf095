"""GitLab: issues and merge requests with notes, of a project's export or of the interface."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import (
    FAULTS,
    Shape,
    documents,
    first_shapes,
    id_of,
    id_text,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_SUBJECTS = ("", "item", "issues.item", "merge_requests.item")
_SUBJECT = tuple({"iid", "title", "description", author} for author in ("author", "author_id"))
_NOTES = ("", "item")
_NOTE = ({"noteable_type", "noteable_id", "body"},)
_DISCUSSION = ({"individual_note", "notes"},)
_ON_LINES = "DiffNote"
_WEB = re.compile(r"https?://[^/]+/(.+?)(?:/-)?/(?:issues|work_items|merge_requests)/\d+")
_BOT = re.compile(r"(?:project|group)_\d+_bot|[-_]bot\Z", re.IGNORECASE)


@dataclass
class _Known:
    """What one row says about others."""

    sources: dict[str, str] = field(default_factory=dict)
    """The project by issue or merge request."""
    people: dict[str, str] = field(default_factory=dict)
    """Names by id: exports have those of the authors of notes only."""

    def note(self, row: Any) -> None:
        """Remembers the name of an author."""
        author = row.get("author") if isinstance(row, dict) else None
        if isinstance(author, dict) and author.get("name") and row.get("author_id"):
            self.people[id_text(row["author_id"])] = str(author["name"])

    def author(self, row: Mapping[str, Any]) -> str:
        """Returns the name of an author, or the id."""
        author, key = row.get("author") or {}, id_text(row.get("author_id"))
        return str(author.get("name") or author.get("username") or self.people.get(key, key))


def _recognises(files: Files) -> bool:
    return any(
        _subjects(keys)
        or path_of(keys, _NOTES, *_NOTE) is not None
        or path_of(keys, _NOTES, *_DISCUSSION) is not None
        for keys in first_shapes(files, "issues")
    )


def _subjects(keys: Shape) -> list[str]:
    """Returns where issues and merge requests of a file are; one of an older export has both."""
    return [path for path in _SUBJECTS if path_of(keys, [path], *_SUBJECT) is not None]


def _read(files: Files) -> Iterator[Item]:
    yield from by_time(_items(files))  # its interface gives the newest notes first


def _items(files: Files) -> Iterator[Item]:
    known = _Known()
    for name in documents(files):
        for place in _subjects(shape(files, name)):
            for number, row in rows(files, name, place):
                yield from _subject(files, name, number, row, known)
    for name in documents(files):
        keys = shape(files, name)
        if (path := path_of(keys, _NOTES, *_DISCUSSION)) is not None:
            for number, row in rows(files, name, path):
                notes = row.get("notes") if isinstance(row, dict) else None
                if isinstance(notes, list):
                    yield from _notes(name, number, notes, None, known)
                else:
                    yield no_message(name, number, "GitLab")
        elif (path := path_of(keys, _NOTES, *_NOTE)) is not None:
            for number, row in rows(files, name, path):
                yield from _notes(name, number, [row], None, known)


def _subject(files: Files, name: str, number: int, row: Any, known: _Known) -> Iterator[Item]:
    try:
        kind = "MergeRequest" if "source_branch" in row else "Issue"
        thread = f"{kind}/{id_of(row) if 'id' in row else id_of(row, 'iid')}"
        address = row.get("web_url")
        of_web = _WEB.match(address or "")
        source = of_web[1] if of_web else files.path.name.partition(".")[0]
        known.sources[thread] = source
        notes = list_of(row.get("notes"))
        for one in (row, *notes):
            known.note(one)
        title = str(row["title"] or "").strip()
        yield Message(
            id=thread,
            thread=thread,
            author=known.author(row),
            time=seconds(row.get("created_at")),
            text="\n".join(filter(None, (title, _text(row.get("description"))))),
            source=source,
            link=address,
            is_bot=_is_bot(row),
            is_private=bool(row.get("confidential")),
        )
    except FAULTS as error:
        yield no_message(name, number, "GitLab", error)
        return
    yield from _notes(name, number, notes, thread, known, is_private=bool(row.get("confidential")))


def _notes(
    name: str,
    number: int,
    notes: list[Any],
    thread: str | None,
    known: _Known,
    *,
    is_private: bool = False,
) -> Iterator[Item]:
    """Yields the notes of an issue, or of a discussion: all but its first answer that.

    A discussion of lines is a thread apart.
    """
    first_of: dict[str, str] = {}
    for position, row in enumerate(notes):
        try:
            of = thread or f"{row['noteable_type']}/{id_of(row, 'noteable_id')}"
            note = f"{of}/{id_of(row) if 'id' in row else position}"
            discussion = str(row.get("discussion_id") or (note if thread else of))
            first = first_of.setdefault(discussion, note)
            yield Message(
                id=note,
                parent=None if first == note else first,
                thread=first if row.get("type") == _ON_LINES else of,
                author=known.author(row),
                time=seconds(row.get("created_at")),
                text=_text(row["note"] if "note" in row else row["body"]),
                source=known.sources.get(of, "gitlab"),
                is_bot=_is_bot(row),
                is_system=bool(row.get("system")),
                is_private=is_private
                or bool(row.get("internal", row.get("confidential")) or False),
            )
        except FAULTS as error:
            yield no_message(name, number, "GitLab", error)


def _is_bot(row: Mapping[str, Any]) -> bool:
    return _BOT.search(str((row.get("author") or {}).get("username") or "")) is not None


def _text(text: str | None) -> str:
    return markdown_text(text or "", html=True)


GITLAB = ExportFormat(
    "gitlab",
    "GitLab (export of a project; issues and notes, JSON of its interface)",
    "https://docs.gitlab.com/user/project/settings/import_export/",
    _recognises,
    _read,
    knows_replies=False,
)
