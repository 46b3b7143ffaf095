"""Small dumps in the public schema."""

import json
from typing import Any

LONG = "This is a perfectly ordinary comment, number "


def comment(name: str, body: str, parent: str = "t3_p", **fields: Any) -> dict[str, Any]:
    """A comment as the public dumps have it."""
    return {
        "id": name,
        "parent_id": parent,
        "link_id": "t3_p",
        "author": "somebody",
        "subreddit": "tests",
        "created_utc": 1_600_000_000,
        "body": body,
        **fields,
    }


def lines(*comments: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in comments)
