"""A page of issues without journals, and an issue with a quote, a private note and a change."""

from functools import partial
from typing import Any

from export_samples import message


def _issue(number: int, minute: int, **others: Any) -> dict[str, Any]:
    return {
        "id": number,
        "project": {"id": 1, "name": "Site"},
        "tracker": {"id": 1, "name": "Bug"},
        "author": {"id": 3, "name": "Ann A."},
        "subject": f"Issue {number}",
        "description": "",
        "created_on": f"2024-03-01T08:{minute:02}:00Z",
        **others,
    }


def _journal(number: int, notes: str, **others: Any) -> dict[str, Any]:
    return {
        "id": 70 + number,
        "user": {"id": 4, "name": "Bob B."},
        "notes": notes,
        "created_on": f"2024-03-01T08:{number:02}:00Z",
        "private_notes": False,
        "details": [],
        **others,
    }


_JOURNALS = [
    _journal(1, "", details=[{"property": "attr", "name": "status_id", "new_value": "3"}]),
    _journal(2, "Which *browser*?\r\n\r\n<pre>a > b</pre>"),
    _journal(3, "He means _Lynx_", private_notes=True),
    _journal(4, "Bob B. a écrit (#note-2):\n> Which *browser*?\n\nAll", user={"name": "Ann A."}),
    _journal(5, "Thanks", user=None),
]
FILES: dict[str, Any] = {
    "issue_9.json": {"issue": _issue(9, 0, description="It fails\r\nsince **today**") | {
        "journals": _JOURNALS
    }},
    "issues.json": {"issues": [_issue(10, 10), _issue(11, 11, is_private=True)], "total_count": 2},
}  # fmt: skip
_message = partial(message, source="Site")
MESSAGES = [
    _message("9", "Issue 9\nIt fails\nsince today", "Ann A.", 0),
    _message("9/71", "", "Bob B.", 1, is_system=True),
    _message("9/72", "Which browser?\na > b", "Bob B.", 2),
    _message("9/73", "He means Lynx", "Bob B.", 3, is_private=True),
    _message("9/74", "All", "Ann A.", 4, parent="9/72"),
    _message("9/75", "Thanks", "", 5),
    _message("10", "Issue 10", "Ann A.", 10),
    _message("11", "Issue 11", "Ann A.", 11, is_private=True),
]
BROKEN = {
    "issue_9.json": {"issue": {**FILES["issue_9.json"]["issue"], "journals": [*_JOURNALS, {}, 7]}},
    "issues.json": {"issues": [*FILES["issues.json"]["issues"], {"tracker": {}}, None]},
}
EMPTY = {"issues.json": {"issues": [], "total_count": 0}}
REAL = {
    "redmine/redmine_issue_7311.json": (23, 0, 11, 0),
    "redmine/redmine_issues.json": (3, 0, 0, 0),
    "redmine": (26, 0, 11, 0),
}
