"""Dumps of MongoDB, threads of Discord, and rooms of Matrix."""

import io
import struct
from typing import Any

import pytest

from rejoinder.errors import InputError
from rejoinder.exports.servers import bson_documents


def bson(elements: bytes) -> bytes:
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


NUMBER = b"\x10n\0" + struct.pack("<i", 7)
PATTERN = b"\x0br\0a.*\0i\0"
DATE = b"\x09d\0" + struct.pack("<q", 1_000)


def documents(content: bytes) -> list[dict[str, Any]]:
    return list(bson_documents(io.BytesIO(content), "x.bson"))


def test_values_of_a_dump_are_those_of_json():
    held = b"\x04l\0" + bson(b"\x020\0" + struct.pack("<i", 2) + b"a\0" + b"\x081\0\x01")
    found = documents(bson(NUMBER + PATTERN + DATE + held) + bson(NUMBER))
    assert found[0] == {"n": 7, "r": None, "d": {"$date": 1_000}, "l": ["a", True]}
    assert found[1] == {"n": 7}


@pytest.mark.parametrize("damaged", [bson(NUMBER)[:-2], b"\x04\0\0\0", bson(b"\x99n\0")])
def test_a_damaged_dump_is_told_after_its_whole_documents(damaged):
    reading = bson_documents(io.BytesIO(bson(NUMBER) + damaged), "x.bson")
    assert next(reading) == {"n": 7}
    with pytest.raises(InputError, match=r"x\.bson is not whole BSON .*dump it again"):
        list(reading)


def test_messages_of_a_thread_of_discord_name_it(read):
    said = {"type": "Default", "author": {"name": "ann"}, "timestamp": "2024-03-01T10:00:00+00:00"}
    messages = [
        {**said, "id": "1", "content": "*Why?*"},
        {**said, "id": "2", "content": "So", "type": "Reply", "reference": {"messageId": "1"}},
        {**said, "id": "3", "content": "x", "reference": {"messageId": "1", "type": "Forward"}},
        {**said, "content": "without an id"},
    ]
    channel = {"id": "9", "type": "GuildPublicThread", "name": "why"}
    found = read("discord", {"why.json": {"guild": {}, "channel": channel, "messages": messages}})
    assert [(one.text, one.parent, one.thread) for one in found[:3]] == [
        ("Why?", None, "9"),
        ("So", "1", "9"),
        ("x", None, "9"),
    ]
    assert (found[3].line, found[3].problem) == (4, "no message (KeyError('id'))")
