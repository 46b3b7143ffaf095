"""Items in lines, as Hacker News gives them, and a story with its comments from its search."""

import json
from typing import Any

from rejoinder.exports.base import Message


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


_ROWS = [
    {"by": "ann", "id": 1, "kids": [2], "time": 1709287200, "title": "Ask HN: R&amp;D?",
     "text": "Which <i>port</i>?<p>Please", "type": "story", "descendants": 2},
    {"by": "bob", "id": 2, "parent": 1, "time": 1709287260, "type": "comment",
     "text": "&gt; Which port?<p>It&#x27;s 8000"},
    {"by": "ann", "id": 3, "parent": 2, "time": 1709287320, "type": "comment", "text": "Thanks"},
    {"id": 4, "parent": 1, "time": 1709287380, "type": "comment", "deleted": True},
    {"by": "bob", "id": 5, "poll": 1, "time": 1709287440, "type": "pollopt", "text": "8000"},
]  # fmt: skip
_COMMENT: dict[str, Any] = {
    "id": 8, "created_at": "2024-03-01T10:12:00.000Z", "created_at_i": 1709287920,
    "type": "comment", "author": "mia", "title": None, "text": "<p>Nice", "parent_id": 7,
    "story_id": 7, "children": [],
}  # fmt: skip
_STORY: dict[str, Any] = {
    "id": 7, "created_at": "2024-03-01T10:10:00.000Z", "created_at_i": 1709287800, "type": "story",
    "author": "ann", "title": "Show HN: A port", "url": "https://example.org", "text": None,
    "parent_id": None, "story_id": 7,
    "children": [{**_COMMENT, "children": [
        {**_COMMENT, "id": 9, "parent_id": 8, "author": "ann", "text": "Thanks",
         "created_at_i": 1709287980}]},
        {**_COMMENT, "id": 10, "author": None, "text": None, "created_at_i": 1709288040},
    ],
}  # fmt: skip
FILES: dict[str, Any] = {"items.jsonl": _lines(*_ROWS), "7.json": _STORY}
_TEN = 1709287200.0
"""1 March 2024, 10:00 UTC."""


def _message(id_: int, minute: int, author: str, text: str, **others: Any) -> Message:
    return Message(
        id=str(id_),
        text=text,
        author=author,
        time=_TEN + 60 * minute,
        source="hackernews",
        link=f"https://news.ycombinator.com/item?id={id_}",
        **others,
    )


MESSAGES = [
    _message(1, 0, "ann", "Ask HN: R&D?\nWhich port?\nPlease", thread="1"),
    _message(2, 1, "bob", "It's 8000", parent="1", thread="1"),
    _message(3, 2, "ann", "Thanks", parent="2", thread="1"),
    _message(4, 3, "", "", parent="1", thread="1"),
    _message(5, 4, "bob", "8000", thread="1", is_system=True),
    _message(7, 10, "ann", "Show HN: A port", thread="7"),
    _message(8, 12, "mia", "Nice", parent="7", thread="7"),
    _message(9, 13, "ann", "Thanks", parent="8", thread="7"),
    _message(10, 14, "", "", parent="7", thread="7"),
]
BROKEN = {"items.jsonl": _lines(*_ROWS, None, {"by": "x"}, {**_ROWS[0], "id": "x"})}
EMPTY = {"items.json": []}
REAL: dict[str, tuple[int, int, int, int]] = {}
