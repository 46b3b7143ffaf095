"""Pages of REST with an issue and a pull request, a discussion of GraphQL, and what `gh` writes."""

import json
from typing import Any

from rejoinder.exports.base import Message

_WEB, _API = "https://github.com/acme/port", "https://api.github.com/repos/acme/port"


def _row(user: str | None, minute: int, body: str | None, **others: Any) -> dict[str, Any]:
    time = f"2024-03-01T10:{minute:02}:00Z"
    kind = "Bot" if user == "ci[bot]" else "User"
    return {
        "user": None if user is None else {"login": user, "id": len(user), "type": kind},
        "created_at": time,
        "updated_at": time,
        "body": body,
        **others,
    }


_ISSUES = [
    _row("ann", 0, "<!-- template -->\nIt takes **none**.", id=11, number=1, title="Which port?",
         html_url=f"{_WEB}/issues/1", comments=3, updated_at="2024-03-09T00:00:00Z"),
    _row("bob", 10, None, id=12, number=2, title="Take 8000", html_url=f"{_WEB}/pull/2",
         pull_request={"url": f"{_API}/pulls/2"}),
]  # fmt: skip
_COMMENTS = [
    _row("ci[bot]", 2, "Stale", id=22, html_url=f"{_WEB}/issues/1#issuecomment-22",
         issue_url=f"{_API}/issues/1"),
    _row(None, 1, "> It takes none.\n\n`8000`", id=21, issue_url=f"{_API}/issues/1",
         html_url=f"{_WEB}/issues/1#issuecomment-21", updated_at="2024-03-01T10:05:00Z"),
]  # fmt: skip
_LINES = [
    _row("ann", 11, "Why?", id=21, diff_hunk="@@", pull_request_url=f"{_API}/pulls/2",
         html_url=f"{_WEB}/pull/2#discussion_r21"),
    _row("bob", 12, "Fixed", id=32, in_reply_to_id=21, pull_request_url=f"{_API}/pulls/2",
         html_url=f"{_WEB}/pull/2#discussion_r32"),
]  # fmt: skip
_DISCUSSION = {
    "number": 3, "title": "Ideas", "url": f"{_WEB}/discussions/3", "bodyText": "Say yours",
    "createdAt": "2024-03-01T10:20:00Z", "author": {"login": "ann", "__typename": "User"},
    "comments": {"nodes": [{
        "id": "DC_1", "body": "More ports", "createdAt": "2024-03-01T10:21:00Z",
        "author": {"login": "bob"}, "url": f"{_WEB}/discussions/3#discussioncomment-1",
        "replies": {"nodes": [{
            "id": "DC_2", "body": "Yes", "createdAt": "2024-03-01T10:22:00Z",
            "author": {"login": "ann"}, "replyTo": {"id": "DC_1"}}]},
    }]},
}  # fmt: skip
_LISTED = [{
    "author": {"login": "mia", "is_bot": False}, "body": "Hello", "number": 4, "title": "Hi",
    "createdAt": "2024-03-01T10:30:00Z", "url": f"{_WEB}/issues/4",
    "comments": [{"id": "IC_9", "author": {"login": "bob"}, "body": "Hi, Mia",
                  "createdAt": "2024-03-01T10:31:00Z"}],
}]  # fmt: skip
_REPO = {"name": "acme/port"}
_EVENTS = [
    {"type": "WatchEvent", "actor": {}, "repo": _REPO, "payload": {"action": "started"}},
    {"type": "IssueCommentEvent", "actor": {}, "repo": _REPO, "payload": {
        "issue": _ISSUES[0],
        "comment": _row("mia", 3, "Thanks", id=23, issue_url=f"{_API}/issues/1",
                        html_url=f"{_WEB}/issues/1#issuecomment-23")}},
]  # fmt: skip
FILES: dict[str, Any] = {
    "2024-03-01-10.json": "".join(json.dumps(event) + "\n" for event in _EVENTS),
    "comments.json": _COMMENTS,
    "issues.json": _ISSUES,
    "lines.json": _LINES,
    "discussions.json": {"data": {"repository": {"discussions": {"nodes": [_DISCUSSION]}}}},
    "listed.json": _LISTED,
}
_TEN = 1709287200.0
"""1 March 2024, 10:00 UTC."""


def _message(id_: str, minute: int, author: str, text: str, **others: Any) -> Message:
    fields: dict[str, Any] = {
        "id": f"acme/port#{id_}",
        "text": text,
        "thread": f"acme/port#{id_.partition('/')[0]}",
        "author": author,
        "time": _TEN + 60 * minute,
        "source": "acme/port",
    }
    return Message(**{**fields, **others})


MESSAGES = [
    _message("1", 0, "ann", "Which port?\nIt takes none.", link=f"{_WEB}/issues/1"),
    _message("1/21", 1, "", "8000", edited=True,
             link=f"{_WEB}/issues/1#issuecomment-21"),
    _message("1/22", 2, "ci[bot]", "Stale", link=f"{_WEB}/issues/1#issuecomment-22", is_bot=True),
    _message("1/23", 3, "mia", "Thanks", link=f"{_WEB}/issues/1#issuecomment-23"),
    _message("2", 10, "bob", "Take 8000", link=f"{_WEB}/pull/2"),
    _message("2/line/21", 11, "ann", "Why?", link=f"{_WEB}/pull/2#discussion_r21",
             thread="acme/port#2/line/21"),
    _message("2/line/32", 12, "bob", "Fixed", parent="acme/port#2/line/21",
             link=f"{_WEB}/pull/2#discussion_r32", thread="acme/port#2/line/21"),
    _message("3", 20, "ann", "Ideas\nSay yours", link=f"{_WEB}/discussions/3"),
    _message("3/DC_1", 21, "bob", "More ports", parent="acme/port#3",
             link=f"{_WEB}/discussions/3#discussioncomment-1"),
    _message("3/DC_2", 22, "ann", "Yes", parent="acme/port#3/DC_1"),
    _message("4", 30, "mia", "Hi\nHello", link=f"{_WEB}/issues/4"),
    _message("4/IC_9", 31, "bob", "Hi, Mia"),
]  # fmt: skip
BROKEN = {"issues.json": [*_ISSUES, {"title": "x"}, 5, _row("ann", 3, "x", title="x", number="x")]}
EMPTY = {"issues.json": []}
REAL = {
    "github/github_issue_1.json": (1, 0, 0, 0),
    "github/github_issue_comments_1.json": (1, 0, 0, 0),
    "github/github_request_pull_request_1_comments.json": (2, 0, 0, 0),
}
