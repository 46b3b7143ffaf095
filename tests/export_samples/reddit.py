"""A month of submissions, and of comments that answer them."""

import bz2
import json
from typing import Any

from rejoinder.exports.base import Message


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _row(id_: str, author: str, minute: int, **others: Any) -> dict[str, Any]:
    time = 1709287200 + 60 * minute
    return {"id": id_, "author": author, "subreddit": "help", "created_utc": time, **others}


_COMMENTS = [
    _row("c1", "bob", 1, body="&gt; Which port?\n\n**8000**", link_id="t3_p1", parent_id="t3_p1"),
    _row("c2", "[deleted]", 3, body="[removed]", link_id="t3_p1", parent_id="t1_c1"),
    _row("c3", "ann", 4, body="Thanks", link_id="t3_p1", parent_id="t1_c1", edited=1709287500.0,
         permalink="/r/help/comments/p1/which/c3/"),
]  # fmt: skip
_POSTS = [
    _row("p1", "ann", 0, title="Which port?", selftext="For R&amp;D", num_comments=3),
    _row("p2", "AutoModerator", 2, title="Rules", selftext="", num_comments=0),
]
_SUBMISSIONS = _lines(*_POSTS)
FILES = {
    "RC_2024-03": _lines(*_COMMENTS),
    "RS_2024-03.bz2": bz2.compress(_SUBMISSIONS.encode()),
    "readme.md": "Comments and submissions",
}
_TEN = 1709287200.0
MESSAGES = [
    Message(
        id="post/p1",
        text="Which port?\nFor R&D",
        thread="post/p1",
        author="ann",
        time=_TEN,
        source="help",
    ),
    Message(
        id="c1",
        text="8000",
        parent="post/p1",
        thread="post/p1",
        author="bob",
        time=_TEN + 60,
        source="help",
    ),
    Message(
        id="post/p2",
        text="Rules",
        thread="post/p2",
        author="AutoModerator",
        time=_TEN + 120,
        source="help",
        is_bot=True,
    ),
    Message(id="c2", text="", parent="c1", thread="post/p1", time=_TEN + 180, source="help"),
    Message(
        id="c3",
        text="Thanks",
        parent="c1",
        thread="post/p1",
        author="ann",
        time=_TEN + 240,
        source="help",
        link="https://www.reddit.com/r/help/comments/p1/which/c3/",
        edited=True,
    ),
]
BROKEN = {"RC_2024-03": _lines(*_COMMENTS, {"id": "c4"}, 5, {"body": "no id"}) + '{"id": "c'}
EMPTY = {"RC_2024-03": "", "RS_2024-03": ""}
REAL: dict[str, tuple[int, int, int, int]] = {}
