"""A team with a channel, a thread, a bot, and a private channel."""

from typing import Any

from rejoinder.exports.base import Message

FILES: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann A."}},
        {"id": "U2", "name": "bob", "deleted": True, "profile": {"real_name": "Bob B."}},
    ],
    "channels.json": [{"id": "C1", "name": "help"}],
    "groups.json": [{"id": "G1", "name": "board"}],
    "help/2024-03-01.json": [
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1709280000.000100",
         "text": "<@U2> has joined the channel"},
        {"type": "message", "user": "U1", "ts": "1709280100.000200", "thread_ts":
         "1709280100.000200", "text": "Does <#C9|billing> work for <@U2>? R&amp;D can't open it"},
        {"type": "message", "user": "U9", "ts": "1709280300.000400",
         "text": "See <https://example.org/a|the page>, <!here>", "edited": {"user": "U9"}},
        {"type": "message", "user": "U2", "ts": "1709280200.000300", "thread_ts":
         "1709280100.000200", "text": "&gt; Does it work\nYes, since today"},
    ],
    "help/2024-03-02.json": [
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "username": "ci",
         "ts": "1709366400.000500", "text": "Build passed"},
        {"type": "message", "user": "U1", "ts": "1709366500.000600", "thread_ts":
         "1709280100.000200", "subtype": "thread_broadcast", "text": "Thanks!"},
        {"type": "message", "user": "U1", "ts": "1709366600.000700", "text": "", "files": [{}]},
    ],
    "board/2024-03-01.json": [
        {"type": "message", "user": "U1", "ts": "1709280000.000100", "text": "Between us"},
    ],
}  # fmt: skip
_THREAD = "help/1709280100.000200"
MESSAGES = [
    Message(
        id="board/1709280000.000100",
        text="Between us",
        author="Ann",
        time=1709280000.0001,
        source="board",
        is_private=True,
    ),
    Message(
        id="help/1709280000.000100",
        text="@Bob B. has joined the channel",
        author="Bob B.",
        time=1709280000.0001,
        source="help",
        is_system=True,
    ),
    Message(
        id=_THREAD,
        text="Does #billing work for @Bob B.? R&D can't open it",
        thread=_THREAD,
        author="Ann",
        time=1709280100.0002,
        source="help",
    ),
    Message(
        id="help/1709280200.000300",
        text="Yes, since today",
        parent=_THREAD,
        thread=_THREAD,
        author="Bob B.",
        time=1709280200.0003,
        source="help",
    ),
    Message(
        id="help/1709280300.000400",
        text="See the page, @here",
        author="U9",
        time=1709280300.0004,
        source="help",
        edited=True,
    ),
    Message(
        id="help/1709366400.000500",
        text="Build passed",
        author="ci",
        time=1709366400.0005,
        source="help",
        is_bot=True,
    ),
    Message(
        id="help/1709366500.000600",
        text="Thanks!",
        parent=_THREAD,
        thread=_THREAD,
        author="Ann",
        time=1709366500.0006,
        source="help",
    ),
    Message(
        id="help/1709366600.000700", text="", author="Ann", time=1709366600.0007, source="help"
    ),
]
BROKEN = {"help/2024-03-01.json": [*FILES["help/2024-03-01.json"], "no message", {"ts": "x"}]}
EMPTY = {"users.json": [], "help/2024-03-01.json": []}
REAL = {
    "slack/mesos-magellan": (158, 100, 11, 0),
    "slack/mesos-magellan.zip": (158, 100, 11, 0),
    "slack_api": (7, 1, 1, 0),
}
