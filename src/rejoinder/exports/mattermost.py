"""Mattermost: the bulk export with an object on each line, or pages of posts from its API."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import (
    FAULTS,
    documents,
    from_milliseconds,
    item_of,
    json_members,
    no_message,
)

_LINE = re.compile(
    rb'\s*\{\s*"type":\s*"(version|team|channel|user|bot|post|direct_channel|direct_post)",'
    rb'\s*"\1":'
)
_PAGE = re.compile(rb'\s*\{\s*"(?:order|posts)":')
_NEWS = re.compile(
    r"@?\S+ (?:(?:joined|left) the (?:channel|team)|(?:was )?(?:added to|removed from) the "
    r"(?:channel|team)(?: by \S+)?)\."
)
"""Matches what Mattermost says about channels, as exports without the type of posts have it."""
_LOOKED_AT = 20


def _recognises(files: Files) -> bool:
    names = sorted(documents(files), key=lambda name: ".jsonl" not in name.lower())
    heads = (files.head(name) for name in names[:_LOOKED_AT])
    return any(_LINE.match(head) or _is_page(head) for head in heads)


def _is_page(head: bytes) -> bool:
    return bool(_PAGE.match(head)) and b'"channel_id":' in head


def _messages(files: Files) -> Iterator[Item]:
    names = documents(files)
    for name in names:
        if _LINE.match(files.head(name)):
            yield from _Bulk(name).read(files)
    for name in names:
        if _is_page(files.head(name)):
            yield from _page(files, name)


class _Bulk:
    """A bulk export, with what lines before those of posts say."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._teams: set[str] = set()
        self._private: set[tuple[str, str]] = set()
        self._bots: set[str] = set()

    def read(self, files: Files) -> Iterator[Item]:
        """Yields the posts, each with its replies."""
        decoder = msgspec.json.Decoder()
        with files.open(self._name) as file:
            for number, line in enumerate(file, 1):
                try:
                    if line.strip():
                        row = decoder.decode(line.removeprefix(b"\xef\xbb\xbf"))
                        yield from self._line(row[row["type"]], row["type"], number)
                except (*FAULTS, RecursionError) as error:
                    yield no_message(self._name, number, "Mattermost", error)

    def _line(self, row: Any, kind: str, number: int) -> list[Message]:
        if kind == "team":
            self._teams.add(row["name"])
        elif kind == "channel" and row.get("type") == "P":
            self._private.add((row["team"], row["name"]))
        elif kind == "bot":
            self._bots.add(row["username"])
        elif kind in ("post", "direct_post"):
            return list(self._posts(row, number))
        return []

    def _posts(self, row: Mapping[str, Any], number: int) -> Iterator[Message]:
        channel = (row.get("team") or "", row.get("channel") or "")
        members = row.get("channel_members")
        if members:
            source = ", ".join(sorted(members))
        else:
            source = "/".join(channel) if len(self._teams) > 1 else channel[1]
        is_private = bool(members) or channel in self._private
        first, replies = f"{self._name}:{number}", row.get("replies") or []
        for place, post in enumerate([row, *replies]):
            user = post.get("user") or ""
            yield Message(
                id=f"{first}.{place}" if place else first,
                parent=first if place else None,
                thread=first if replies else None,
                author=user,
                source=source,
                is_bot=user in self._bots or _by_program(post),
                is_private=is_private,
                **_said(post),
            )


def _page(files: Files, name: str) -> Iterator[Item]:
    with files.open(name) as file:
        for number, (id_, post) in enumerate(json_members(file, "posts", files.where(name)), 1):
            yield item_of(name, number, "Mattermost", _posted, id_, post)


def _posted(id_: str, post: Mapping[str, Any]) -> Message:
    return Message(
        id=id_,
        parent=post.get("root_id") or None,
        thread=post.get("root_id") or None,
        author=post.get("user_id") or "",
        source=post["channel_id"],
        is_bot=_by_program(post),
        **_said(post),
    )


def _said(post: Mapping[str, Any]) -> dict[str, Any]:
    text, kind = post["message"] or "", post.get("type")
    is_system = kind.startswith("system_") if kind else bool(_NEWS.fullmatch(text))
    return {
        "time": from_milliseconds(post.get("create_at")),
        "text": "" if post.get("delete_at") else markdown_text(text),
        "is_system": is_system,
        "edited": bool(post.get("edit_at")),
    }


def _by_program(post: Mapping[str, Any]) -> bool:
    props = post.get("props") or {}
    named = any(props.get(key) in ("true", True) for key in ("from_bot", "from_webhook"))
    return named or str(post.get("type") or "").startswith("custom_")


MATTERMOST = ExportFormat(
    "mattermost",
    "Mattermost (bulk export, or posts from its API)",
    "https://docs.mattermost.com/administration-guide/manage/bulk-export-tool.html",
    _recognises,
    lambda files: by_time(_messages(files)),
)
