"""Reads issues with their comments: GitLab, Redmine, Bugzilla and GitHub.

GitLab: issues and merge requests with notes, from a project export or its API. Redmine: issues with
journals, from its API. Bugzilla: bugs with comments, as XML from a bug's page or JSON from its API.
GitHub: issues, pull requests and discussions, from REST pages, GraphQL responses, `gh issue list
--json`, migration archives and GH Archive events.

GitHub's comments on an issue are a flat list that does not say what each answers. Comments on lines
of a pull request, and in discussions, do say so; comments on the same lines form a thread.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text

# GitLab

_SUBJECT = [{"iid", "title", "description", author} for author in ("author", "author_id")]
_SUBJECTS = [
    rows.Layout([path], _SUBJECT, "issues")
    for path in ("", "item", "issues.item", "merge_requests.item")
]
"""Issues and merge requests; a file of an older export has both."""
_LOOSE = rows.Layout(
    ("", "item"),
    ({"individual_note", "notes"}, {"noteable_type", "noteable_id", "body"}),
    "issues",
)
"""Discussions, and notes alone."""
_ON_LINES = "DiffNote"
_WEB = re.compile(r"https?://[^/]+/(.+?)(?:/-)?/(?:issues|work_items|merge_requests)/\d+")
_BOT = re.compile(r"(?:project|group)_\d+_bot|[-_]bot\Z", re.IGNORECASE)


@dataclass
class _Known:
    """Facts from one row that other rows need."""

    sources: dict[str, str] = field(default_factory=dict)
    """The project by issue or merge request."""
    people: dict[str, str] = field(default_factory=dict)
    """Names by id: exports only have the names of authors of notes."""

    def note(self, row: Any) -> None:
        """Remembers the name of an author."""
        author = row.get("author") if isinstance(row, dict) else None
        if isinstance(author, dict) and author.get("name") and row.get("author_id"):
            self.people[rows.id_text(row["author_id"])] = str(author["name"])

    def author(self, row: Mapping[str, Any]) -> str:
        """Returns the name of an author, or the id."""
        author, key = row.get("author") or {}, rows.id_text(row.get("author_id"))
        return rows.first_of(author, "name", "username") or self.people.get(key, key)


def _items(files: Files) -> Iterator[Item]:
    known = _Known()
    for layout in _SUBJECTS:
        yield from layout.items(files, _subject, known, files.path)
    yield from _LOOSE.items(files, _loose, known)


def _subject(row: Any, known: _Known, path: Path) -> Iterator[rows.Part]:
    kind = "MergeRequest" if "source_branch" in row else "Issue"
    thread = f"{kind}/{rows.id_of(row) if 'id' in row else rows.id_of(row, 'iid')}"
    address, is_private = row.get("web_url"), bool(row.get("confidential"))
    of_web = _WEB.match(address or "")
    source = known.sources[thread] = of_web[1] if of_web else path.name.partition(".")[0]
    notes = rows.list_of(row.get("notes"))
    for one in (row, *notes):
        known.note(one)
    title = str(row["title"] or "").strip()
    yield Message(
        id=thread,
        thread=thread,
        author=known.author(row),
        time=rows.seconds(row.get("created_at")),
        text="\n".join(filter(None, (title, _text(row.get("description"))))),
        source=source,
        link=address,
        is_bot=_is_bot(row),
        is_private=is_private,
    )
    yield from _notes(notes, thread, known, is_private=is_private)


def _loose(row: Any, known: _Known) -> Iterator[rows.Part]:
    yield from _notes(rows.list_of(row["notes"]) if "notes" in row else [row], None, known)


def _notes(
    notes: list[Any], thread: str | None, known: _Known, *, is_private: bool = False
) -> Iterator[rows.Part]:
    """Yields the notes of an issue or a discussion; later notes of a discussion answer its first.

    A discussion of lines is a separate thread.
    """
    firsts: dict[str, str] = {}
    for position, row in enumerate(notes):
        yield partial(_note, row, position, thread, known, firsts, is_private)


def _note(
    row: Any,
    position: int,
    thread: str | None,
    known: _Known,
    firsts: dict[str, str],
    is_private: bool,
) -> Message:
    of = thread or f"{row['noteable_type']}/{rows.id_of(row, 'noteable_id')}"
    note = f"{of}/{rows.id_of(row) if 'id' in row else position}"
    discussion = str(row.get("discussion_id") or (note if thread else of))
    first = firsts.setdefault(discussion, note)
    return Message(
        id=note,
        parent=None if first == note else first,
        thread=first if row.get("type") == _ON_LINES else of,
        author=known.author(row),
        time=rows.seconds(row.get("created_at")),
        text=_text(row["note"] if "note" in row else row["body"]),
        source=known.sources.get(of, "gitlab"),
        is_bot=_is_bot(row),
        is_system=bool(row.get("system")),
        is_private=is_private or bool(row.get("internal", row.get("confidential")) or False),
    )


def _is_bot(row: Mapping[str, Any]) -> bool:
    return _BOT.search(str((row.get("author") or {}).get("username") or "")) is not None


def _text(text: str | None) -> str:
    return markdown_text((text or "").replace("\r\n", "\n"), html=True)


# https://docs.gitlab.com/user/project/settings/import_export/
GITLAB = ExportFormat(
    "gitlab",
    "GitLab (export of a project; issues and notes, JSON of its interface)",
    lambda files: rows.recognises(files, *_SUBJECTS, _LOOSE),
    lambda files: by_time(_items(files)),  # its API returns the newest notes first
    knows_replies=False,
)


# Redmine

_ISSUES = rows.Layout(
    ("issues.item", "issue", "item.issue", "item", ""),
    ({"id", "tracker", "subject"}, {"id", "tracker", "journals"}),
    "issue",
)
_QUOTED = re.compile(r"\A[^\n]{1,100}#note-(\d{1,4})\)?:?\s*\n(?=>)")
"""Matches "Ann wrote in #note-3:" in any language, before the lines that it quotes."""


def _issue(row: Any) -> Iterator[rows.Part]:
    issue, project = rows.id_of(row), row.get("project") or {}
    source = rows.first_of(project, "name", "id") or "redmine"
    journals = rows.list_of(row.get("journals"))
    subject, is_private = str(row.get("subject") or "").strip(), bool(row.get("is_private"))
    yield Message(
        id=issue,
        thread=issue,
        author=rows.first_of(row.get("author"), "name", "id"),
        time=rows.seconds(row.get("created_on")),
        text="\n".join(filter(None, (subject, _text(row.get("description"))))),
        source=source,
        is_private=is_private,
    )
    ids: list[str] = []
    for journal in journals:
        yield partial(_journal, journal, issue, source, ids, is_private)


def _journal(row: Any, issue: str, source: str, ids: list[str], is_private: bool) -> Message:
    notes = row.get("notes") or ""
    quoted = _QUOTED.match(notes)
    position = int(quoted[1]) if quoted else 0
    ids.append(f"{issue}/{rows.id_of(row)}")
    return Message(
        id=ids[-1],
        parent=ids[position - 1] if 0 < position < len(ids) else None,
        thread=issue,
        author=rows.first_of(row.get("user"), "name", "id"),
        time=rows.seconds(row.get("created_on")),
        text=_text(_QUOTED.sub("", notes)),
        source=source,
        is_system=not notes,
        is_private=is_private or bool(row.get("private_notes")),
    )


# https://www.redmine.org/projects/redmine/wiki/Rest_Issues
REDMINE = ExportFormat(
    "redmine",
    "Redmine (issues with journals, JSON of its interface)",
    _ISSUES.recognises,
    lambda files: _ISSUES.items(files, _issue),
    knows_replies=False,
)


# Bugzilla

_BUGS = rows.Layout(("bugs.item", "item", ""), [{"id", "summary", "product", "creator"}])
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
_BUGZILLA_BOT = re.compile(r"bot@|@bots\.")


def _is_bugzilla(files: Files) -> bool:
    return bool(rows.xml_files(files, b"<bugzilla")) or any(
        _BUGS.path(keys) is not None or _has_comments(keys)
        for keys in rows.first_shapes(files, "bug")
    )


def _has_comments(keys: rows.Shape) -> bool:
    """Whether a document has lists of comments by the number of their bug."""
    return any(
        re.fullmatch(r"bugs\.\d+\.comments\.item", path) and found >= _COMMENT
        for path, found in keys.items()
    )


def _read_bugzilla(files: Files) -> Iterator[Item]:
    bugs: dict[str, Message] = {}
    for item in _BUGS.messages(files, _bug):
        if isinstance(item, Message):
            bugs[item.id] = item
        else:
            yield item
    for name in rows.xml_files(files, b"<bugzilla"):
        for number, element in rows.xml_items(files, name, "bug"):
            yield from rows.items_of(name, number, _page(element))
    commented = set[str]()
    for name in rows.documents(files):
        if any(re.match(r"bugs\.\d+\Z", path) for path in rows.shape(files, name)):
            for number, (bug, value) in enumerate(rows.json_members(files, name, "bugs"), 1):
                yield from rows.items_of(name, number, _of_bug(bug, value, bugs, commented))
    yield from (message for bug, message in bugs.items() if bug not in commented)


def _bug(row: Any) -> Message:
    bug = rows.id_of(row)
    creator = rows.first_of(row.get("creator_detail"), "real_name") or row.get("creator")
    return Message(
        id=bug,
        thread=bug,
        author=str(creator or ""),
        time=rows.seconds(row.get("creation_time")),
        text=str(row["summary"] or ""),
        source=str(row["product"]),
    )


def _of_bug(
    bug: str, value: Any, bugs: Mapping[str, Message], commented: set[str]
) -> Iterator[rows.Part]:
    comments, known = rows.list_of(value["comments"]), bugs.get(bug)
    if comments:
        commented.add(bug)
    summary, product = (known.text, known.source) if known else ("", "bugzilla")
    yield from _comments(bug, summary, product, comments)


def _page(bug: ElementTree.Element) -> Iterator[rows.Part]:
    comments = [_as_json(comment) for comment in bug.iter("long_desc")]
    id_, summary, product = map(bug.findtext, ("bug_id", "short_desc", "product"))
    return _comments((id_ or "").strip(), summary or "", product or "bugzilla", comments)


def _as_json(comment: ElementTree.Element) -> dict[str, Any]:
    who = comment.find("who")
    day, _, zone = (comment.findtext("bug_when") or "").strip().rpartition(" ")
    named = None if who is None else who.get("name") or who.text
    return {
        "id": comment.findtext("commentid"),
        "creator": named or "",
        "time": f"{day} {_ZONES.get(zone, zone)}".strip(),
        "text": comment.findtext("thetext") or "",
        "is_private": comment.get("isprivate") == "1",
    }


def _comments(bug: str, summary: str, product: str, comments: list[Any]) -> Iterator[rows.Part]:
    if not bug:
        raise KeyError("bug_id")
    ids: list[str] = []
    for row in comments:
        yield partial(_comment, row, bug, summary, product, ids)


def _comment(row: Any, bug: str, summary: str, product: str, ids: list[str]) -> Message:
    position = len(ids)
    ids.append(f"{bug}/{rows.id_of(row) if row.get('id') is not None else position}")
    text, author = row["text"].replace("\r\n", "\n"), str(row.get("creator") or "")
    answers = _ANSWERS.search(text)
    answered = int(answers[1]) if answers else position
    text = _UNREAD.sub("", _ANSWERS.sub("", text)).strip()
    return Message(
        id=ids[-1],
        parent=ids[answered] if answered < position else None,
        thread=bug,
        author=author,
        time=rows.seconds(row.get("time") or row.get("creation_time")),
        text=f"{summary}\n{text}".strip() if position == 0 else text,
        source=product,
        is_bot=_BUGZILLA_BOT.search(author) is not None,
        is_system=_BY_BUGZILLA.match(text) is not None,
        is_private=bool(row.get("is_private")),
    )


# https://bugzilla.readthedocs.io/en/latest/api/core/v1/comment.html
BUGZILLA = ExportFormat(
    "bugzilla",
    "Bugzilla (bugs with comments, XML or JSON)",
    _is_bugzilla,
    _read_bugzilla,
    knows_replies=False,
)


# GitHub

_ROOTS = ("data.repository.", "repository.", "")
_LISTS = ("discussions", "issues", "pullRequests")
_ROWS = rows.Layout((
    *("", "item", "item.item", "items.item"),
    *("data.search.nodes.item", "data.search.edges.item.node"),
    *(f"{root}{list_}.{nodes}" for root in _ROOTS for list_ in _LISTS
      for nodes in ("nodes.item", "edges.item.node")),
    *(f"{root}{one}" for root in _ROOTS for one in ("discussion", "issue", "pullRequest")),
), (
    {"html_url", "number", "title", "user"},
    {"html_url", "issue_url", "body"},
    {"pull_request_url", "body", "user"},
    {"number", "title", "author", "comments"},
    {"title", "url", "createdAt", "comments"},
    {"type", "url", "user", "issue", "body"},
    {"type", "url", "user", "pull_request", "body"},
    {"type", "url", "user", "repository", "title", "body"},
    {"type", "actor", "repo", "payload"},
))  # fmt: skip
_IN_EVENTS = ("issue", "pull_request", "discussion", "comment", "review")
_ADDRESSES = ("html_url", "issue_url", "pull_request_url", "issue", "pull_request", "url")
_ON_LINE = "line/"
_PLACE = re.compile(
    r"https?://[^/]+/(?:api/v3/)?(?:repos/)?([^/]+/[^/]+)/(?:issues|pulls?|discussions)/(\d+)"
)


def _github(row: Any) -> Iterator[rows.Part]:
    """Yields the messages of a row, or of its payload if it is an event."""
    payload = row.get("payload") if isinstance(row, dict) else None
    if not isinstance(payload, dict):
        yield partial(_with_nested, row, None, None)
    else:
        for key in _IN_EVENTS:
            if isinstance(payload.get(key), dict):
                yield partial(_with_nested, payload[key], None, None)


def _with_nested(row: Any, thread: str | None, parent: str | None) -> Iterator[rows.Part]:
    message, nested = _github_message(row, thread, parent), _nested(row)
    yield message
    names_all = thread is not None or "/discussions/" in (message.link or "")
    for reply in nested:
        yield partial(_with_nested, reply, message.thread, message.id if names_all else None)


def _nested(row: dict[str, Any]) -> list[Any]:
    """Returns the comments in an issue or a discussion, or the answers in a comment."""
    nested = row.get("replies") or row.get("comments")
    if isinstance(nested, dict):
        nested = nested.get("nodes") or [edge["node"] for edge in rows.list_of(nested.get("edges"))]
    return rows.list_of(nested) if not isinstance(nested, int | str) else []


def _github_message(row: dict[str, Any], thread: str | None, parent: str | None) -> Message:
    """Returns the message of a row, which is a comment if it is in a thread or names one."""
    found = (_PLACE.match(row[key]) for key in _ADDRESSES if isinstance(row.get(key), str))
    place = next((match for match in found if match), None)
    thread = f"{place[1]}#{place[2]}" if place else thread or f"#{int(row['number'])}"
    is_root = "title" in row
    id_ = thread if is_root else f"{thread}/{_kind(row)}{_id(row)}"
    if row.get("in_reply_to_id"):
        parent = f"{thread}/{_ON_LINE}{row['in_reply_to_id']}"
    elif isinstance(row.get("replyTo"), dict):
        parent = f"{thread}/{row['replyTo']['id']}"
    user = row.get("user") or row.get("author") or {}
    if isinstance(user, str):  # an address, in archives
        user = {"login": user.rpartition("/")[2]}
    login = str(user.get("login") or "")
    body = row.get("body")
    text = str(row.get("bodyText") or "") if body is None else markdown_text(body, html=True)
    title = str(row.get("title") or "") if is_root else ""
    created = row.get("created_at") or row.get("createdAt") or row.get("submitted_at")
    changed = row.get("lastEditedAt") or (None if is_root else row.get("updated_at"))
    return Message(
        id=id_,
        text=f"{title}\n{text}".strip(),
        parent=parent,
        thread=parent or id_ if _ON_LINE in id_ else thread,
        author=login,
        time=rows.seconds(created),
        source=thread.partition("#")[0] or "github",
        link=row.get("html_url") or row.get("url"),
        is_bot="Bot" in (user.get("type"), user.get("__typename"))
        or bool(user.get("is_bot"))
        or login.endswith("[bot]"),
        edited=bool(changed) and changed != created,
    )


def _kind(row: dict[str, Any]) -> str:
    """Returns a prefix that keeps the numbers of different kinds of comments distinct."""
    if "diff_hunk" in row or "in_reply_to_id" in row:
        return _ON_LINE
    return "review/" if "submitted_at" in row else ""


def _id(row: dict[str, Any]) -> str:
    return rows.id_of(row) if "id" in row else row["url"].rpartition("#")[2] or row["url"]


# https://docs.github.com/en/rest/issues/comments
GITHUB = ExportFormat(
    "github",
    "GitHub (issues, pull requests, discussions, JSON)",
    _ROWS.recognises,
    lambda files: by_time(_ROWS.items(files, _github)),
    knows_replies=False,
)
