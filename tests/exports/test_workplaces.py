"""Messages of Slack's API, and what slackdump writes."""

from pathlib import Path
from typing import Any

from export_samples import write
from rejoinder.exports import FORMATS, format_of_export
from rejoinder.exports.base import Message
from rejoinder.exports.files import opened


def _row(second: int, user: str, text: str, **others: Any) -> dict[str, Any]:
    ts = f"170928720{second}.000100"
    return {"type": "message", "user": user, "text": text, "ts": ts, **others}


_ROOT = "1709287201.000100"


def read(files: dict[str, Any], folder: Path) -> list[Any]:
    export = write(files, folder)
    assert format_of_export(export) is FORMATS["slack"]
    with opened(export) as found:
        return list(FORMATS["slack"].read(found))


def test_pages_of_the_api_are_one_channel(tmp_path):
    comment = {"comment": "Nice", "user": "U1"}
    items = read(
        {
            "info.json": {"ok": True, "channel": {"id": "C1", "name": "help", "is_private": True}},
            "users.json": {"ok": True, "members": [{"id": "U1", "name": "ann"}]},
            "page1.json": {"ok": True, "messages": [_row(3, "U1", "<@U1>?"), 3]},
            "page2.json": {"messages": [_row(2, "U2", "x", subtype="file_comment", comment=comment),
                                        _row(1, "U2", "Hi", thread_ts=_ROOT)]},
            "replies.json": {"messages": [_row(1, "U2", "Hi", thread_ts=_ROOT),
                                          _row(4, "U1", "Hello", thread_ts=_ROOT)]},
        },
        tmp_path,
    )  # fmt: skip
    messages = [item for item in items if isinstance(item, Message)]
    assert [(one.author, one.text) for one in messages] == [
        ("U2", "Hi"), ("ann", "Nice"), ("ann", "@ann?"), ("ann", "Hello"),
    ]  # fmt: skip
    assert {one.source for one in messages} == {"help"}
    assert all(one.is_private for one in messages)
    assert messages[-1].parent == messages[0].id
    assert len(items) == 5


def test_slackdump_writes_replies_within_messages(tmp_path):
    replies = [_row(2, "U2", "8000", thread_ts=_ROOT)]
    root = _row(1, "U1", "Port?", thread_ts=_ROOT, slackdump_thread_replies=replies)
    files = {
        "C1.json": {"channel_id": "C1", "name": "help", "messages": [root]},
        "C2.json": {"channel_id": "C2", "name": "", "messages": [_row(1, "U1", "Hi")]},
    }
    assert [(one.id, one.text, one.parent) for one in read(files, tmp_path)] == [
        (f"help/{_ROOT}", "Port?", None),
        ("help/1709287202.000100", "8000", f"help/{_ROOT}"),
        (f"C2/{_ROOT}", "Hi", None),
    ]
