"""A topic with replies, a whisper and a deleted post, the category, and a post of another topic."""

import json
from typing import Any

from rejoinder.exports.base import Message


def _post(number: int, user: str, cooked: str, **others: Any) -> dict[str, Any]:
    return {
        "id": 100 + number,
        "username": user,
        "user_id": -1 if user == "system" else len(user),
        "created_at": f"2024-03-01T10:0{number}:00.000Z",
        "cooked": cooked,
        "post_number": number,
        "post_type": 1,
        "reply_to_post_number": None,
        "topic_id": 12,
        "version": 1,
        "hidden": False,
        **others,
    }


_QUOTE = '<aside class="quote no-group" data-username="ann" data-post="1" data-topic="12"><blockquote><p>Which</p></blockquote></aside>'  # noqa: E501
_POSTS = [
    _post(1, "ann", "<p>Which <b>port</b>?</p><aside class='onebox'>A page</aside>"),
    _post(2, "bob", f"{_QUOTE}\n<p>8000.</p>", version=2),
    _post(3, "ann", "<p>Thanks <a class='mention'>@bob</a></p>", reply_to_post_number=2),
    _post(4, "mia", "<p>Spam?</p>", post_type=4),
    _post(5, "mia", "<p>(post deleted by author)</p>", user_deleted=True),
    _post(6, "system", "Closed.", post_type=3, action_code="closed.enabled"),
]
_TOPIC = {
    "post_stream": {"posts": _POSTS, "stream": [101, 102]},
    "id": 12,
    "title": "Port",
    "category_id": 5,
    "archetype": "regular",
}
_RAW = {
    "id": 7,
    "topic_id": 13,
    "post_number": 9,
    "reply_to_post_number": 3,
    "username": None,
    "created_at": "2024-03-01T11:00:00.000Z",
    "raw": '[quote="bob, post:3, topic:13"]a [quote="x"]b[/quote][/quote]\nUse **this**',
}
FILES: dict[str, Any] = {
    "categories.json": {"category_list": {"categories": [{"id": 5, "name": "Help"}]}},
    "posts.jsonl": json.dumps(_RAW) + "\n",
    "t/12.json": _TOPIC,
    "topics.jsonl": json.dumps(
        {"id": 15, "title": "Old", "posts": [{**_RAW, "topic_id": None, "raw": "Hello"}]}
    ),
}
_TEN = 1709287200.0
"""1 March 2024, 10:00 UTC."""


def _message(number: int, author: str, text: str, **others: Any) -> Message:
    return Message(
        id=f"12/{number}",
        text=text,
        thread="12",
        author=author,
        time=_TEN + 60 * number,
        source="Help",
        **others,
    )


MESSAGES = [
    Message(
        id="13/9",
        text="Use this",
        parent="13/3",
        thread="13",
        time=_TEN + 3600,
        source="discourse",
    ),
    Message(
        id="15/9",
        text="Hello",
        parent="15/3",
        thread="15",
        time=_TEN + 3600,
        source="discourse",
    ),
    _message(1, "ann", "Which port?"),
    _message(2, "bob", "8000.", parent="12/1", edited=True),
    _message(3, "ann", "Thanks @bob", parent="12/2"),
    _message(4, "mia", "Spam?", is_private=True),
    _message(5, "mia", ""),
    _message(6, "system", "Closed.", is_bot=True, is_system=True),
]
BROKEN = {
    "t/12.json": {**_TOPIC, "post_stream": {"posts": [*_POSTS, {"id": 3}, "x"]}},
    "t/14.json": {"post_stream": None, "id": 14},
}
EMPTY = {"t/12.json": {**_TOPIC, "post_stream": {"posts": []}}}
REAL = {"discourse": (24, 0, 0, 10)}
