"""A corpus as ConvoKit saves it, and one of its first version, from Reddit."""

import json
from typing import Any

from rejoinder.exports.base import Message


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


_ROWS = [
    {"id": "L1", "conversation_id": "L1", "text": " Where is it? ", "speaker": "u0",
     "meta": {"parsed": []}, "reply-to": None, "timestamp": None, "vectors": []},
    {"id": "L2", "conversation_id": "L1", "text": "Here.", "speaker": "u1", "meta": {},
     "reply-to": "L1", "timestamp": "1709287200.0", "vectors": []},
    {"id": "L3", "conversation_id": "L1", "text": None, "speaker": "u0", "meta": {},
     "reply-to": "L2", "timestamp": 1709287201, "vectors": []},
]  # fmt: skip
FILES: dict[str, Any] = {
    "films/utterances.jsonl": _lines(*_ROWS),
    "films/speakers.json": {"u0": {"meta": {}}},
    "films/conversations.json": {"L1": {"meta": {"title": "x"}}},
    "films/index.json": {"version": 2},
    "old/utterances.json": [
        {"id": 7, "root": 7, "user": "[deleted]", "reply_to": None, "timestamp": 1709287300.0,
         "text": "&gt; quoted\n\n**Why**?", "meta": {"subreddit": "help"}},
    ],
}  # fmt: skip
_TEN = 1709287200.0
MESSAGES = [
    Message(id="L1", text="Where is it?", thread="L1", author="u0", source="films"),
    Message(
        id="L2", text="Here.", parent="L1", thread="L1", author="u1", time=_TEN, source="films"
    ),
    Message(id="L3", text="", parent="L2", thread="L1", author="u0", time=_TEN + 1, source="films"),
    Message(id="7", text="Why?", thread="7", time=_TEN + 100, source="help"),
]
BROKEN = {"films/utterances.jsonl": _lines(*_ROWS, {"text": "no id"}, 5) + "{\n"}
EMPTY = {"utterances.jsonl": ""}
REAL: dict[str, tuple[int, int, int, int]] = {}
