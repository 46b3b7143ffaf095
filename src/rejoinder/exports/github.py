"""GitHub: issues, pull requests and discussions with their comments, as its interfaces give them.

Pages of REST, answers of GraphQL, `gh issue list --json`, archives of migrations and the events of
GH Archive are read.

Comments on issues are in one row: nothing says what one answers. Comments on lines of a pull
request, and those in discussions, name what they answer; those on the same lines are a thread.
"""

import re
from collections.abc import Iterator
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import FAULTS, Layout, id_of, list_of, no_message, seconds

_ROOTS = ("data.repository.", "repository.", "")
_LISTS = ("discussions", "issues", "pullRequests")
_ROWS = Layout((
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


def _items(files: Files) -> Iterator[Item]:
    for name, number, row in _ROWS.rows(files):
        waiting: list[tuple[Any, str | None, str | None]]
        waiting = [(one, None, None) for one in reversed(_opened(row))]
        while waiting:
            one, thread, parent = waiting.pop()
            try:
                message, nested = _message(one, thread, parent), _nested(one)
            except FAULTS as error:
                yield no_message(name, number, "GitHub", error)
                continue
            yield message
            names_all = thread is not None or "/discussions/" in (message.link or "")
            of = message.id if names_all else None
            waiting += [(reply, message.thread, of) for reply in reversed(nested)]


def _opened(row: Any) -> list[Any]:
    """Returns the row, or what is in it where it is an event."""
    payload = row.get("payload") if isinstance(row, dict) else None
    if not isinstance(payload, dict):
        return [row]
    return [payload[key] for key in _IN_EVENTS if isinstance(payload.get(key), dict)]


def _nested(row: dict[str, Any]) -> list[Any]:
    """Returns the comments in an issue or a discussion, or the answers in a comment."""
    nested = row.get("replies") or row.get("comments")
    if isinstance(nested, dict):
        nested = nested.get("nodes") or [edge["node"] for edge in list_of(nested.get("edges"))]
    return list_of(nested) if not isinstance(nested, int | str) else []


def _message(row: dict[str, Any], thread: str | None, parent: str | None) -> Message:
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
        time=seconds(created),
        source=thread.partition("#")[0] or "github",
        link=_link(row),
        is_bot="Bot" in (user.get("type"), user.get("__typename"))
        or bool(user.get("is_bot"))
        or login.endswith("[bot]"),
        edited=bool(changed) and changed != created,
    )


def _link(row: dict[str, Any]) -> str | None:
    link = row.get("html_url") or row.get("url")
    return None if link is None else str(link)


def _kind(row: dict[str, Any]) -> str:
    """Returns what keeps the numbers of several kinds of comments apart."""
    if "diff_hunk" in row or "in_reply_to_id" in row:
        return _ON_LINE
    return "review/" if "submitted_at" in row else ""


def _id(row: dict[str, Any]) -> str:
    return id_of(row) if "id" in row else row["url"].rpartition("#")[2] or row["url"]


GITHUB = ExportFormat(
    "github",
    "GitHub (issues, pull requests, discussions, JSON)",
    "https://docs.github.com/en/rest/issues/comments",
    _ROWS.recognises,
    lambda files: by_time(_items(files)),
    knows_replies=False,
)
