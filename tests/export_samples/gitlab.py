"""A project's export, with a discussion and a note by GitLab; a page of issues, one of notes."""

import json
from typing import Any

from export_samples import message
from rejoinder.exports.base import Message


def _note(number: int, text: str, **others: Any) -> dict[str, Any]:
    return {
        "id": number,
        "note": text,
        "noteable_type": "Issue",
        "author_id": 4,
        "author": {"name": "Bob B."},
        "system": False,
        "created_at": f"2024-03-01T08:{number:02}:00.000Z",
        "discussion_id": f"d{number}",
        **others,
    }


_ISSUE = {
    "id": 50,
    "iid": 1,
    "title": "Sign-in fails",
    "description": "Since **today**\n\n> quoted",
    "author_id": 3,
    "created_at": "2024-03-01T08:00:00.000Z",
    "confidential": False,
    "notes": [
        _note(1, "Which browser?"),
        _note(3, "added ~bug label", system=True),
        _note(2, "Lynx", discussion_id="d1", author={"name": "Ann A."}, author_id=3),
        _note(4, "Between us", confidential=True),
        _note(5, "Fixed by <b>!7</b>"),
    ],
}
_MERGE = {**_ISSUE, "id": 60, "title": "Fix it", "source_branch": "fix"}
_ON_LINES = {"type": "DiffNote", "noteable_type": "MergeRequest"}
_MERGE["notes"] = [
    _note(10, "Why?", **_ON_LINES),
    _note(11, "Looks good", noteable_type="MergeRequest", author={"name": "Cem"}),
    _note(12, "It was 0", **_ON_LINES, discussion_id="d10", author={"name": "Ann A."}),
]
_MERGE |= {"description": None, "created_at": "2024-03-01T08:09:00.000Z"}
_PAGE = [
    {
        "id": 70,
        "iid": 2,
        "title": "Docs",
        "description": "",
        "author": {"username": "project_12_bot_x", "name": "Docs bot"},
        "created_at": "2024-03-01T08:20:00.000Z",
        "web_url": "https://gitlab.example.org/team/site/-/issues/2",
    }
]
_ANSWERS = [
    {**_note(30, ""), "body": "Which?", "noteable_id": 70},
    {**_note(31, ""), "body": "All", "noteable_id": 70, "author": None, "author_id": None},
]
for _row in _ANSWERS:
    del _row["note"], _row["discussion_id"]
FILES: dict[str, Any] = {
    "tree/project/issues.ndjson": json.dumps(_ISSUE) + "\n",
    "tree/project/merge_requests.ndjson": json.dumps(_MERGE) + "\n",
    "tree/project/milestones.ndjson": '{"iid": 1, "title": "1.0", "description": ""}\n',
    "zz/issues_page_1.json": _PAGE,
    "zz/notes_2.json": _ANSWERS,
}


def _message(key: str, *others: Any, **more: Any) -> Message:
    thread = "/".join(key.split("/")[:2])
    return message(key, *others, **{"thread": thread, "source": "export", **more})


_SITE = {"source": "team/site"}
MESSAGES = [
    _message("Issue/50", "Sign-in fails\nSince today", "Ann A.", 0),
    _message("Issue/50/1", "Which browser?", "Bob B.", 1),
    _message("Issue/50/2", "Lynx", "Ann A.", 2, parent="Issue/50/1"),
    _message("Issue/50/3", "added ~bug label", "Bob B.", 3, is_system=True),
    _message("Issue/50/4", "Between us", "Bob B.", 4, is_private=True),
    _message("Issue/50/5", "Fixed by !7", "Bob B.", 5),
    _message("MergeRequest/60", "Fix it", "Ann A.", 9),
    _message("MergeRequest/60/10", "Why?", "Bob B.", 10, thread="MergeRequest/60/10"),
    _message("MergeRequest/60/11", "Looks good", "Cem", 11),
    _message(
        "MergeRequest/60/12",
        "It was 0",
        "Ann A.",
        12,
        parent="MergeRequest/60/10",
        thread="MergeRequest/60/10",
    ),
    _message("Issue/70", "Docs", "Docs bot", 20, is_bot=True, link=_PAGE[0]["web_url"], **_SITE),
    _message("Issue/70/30", "Which?", "Bob B.", 30, **_SITE),
    _message("Issue/70/31", "All", "", 31, **_SITE),
]
BROKEN = {
    "tree/project/issues.ndjson": FILES["tree/project/issues.ndjson"] + '{"iid": 4}\n{"iid": \n',
    "zz/notes_2.json": [{"id": 4}, *_ANSWERS, 3],
}
EMPTY = {"tree/project/issues.ndjson": ""}
REAL = {
    "gitlab/issue_page_1.json": (2, 0, 0, 0),
    "gitlab/notes_1.json": (2, 0, 1, 0),
    "gitlab": (5, 0, 1, 0),
}
