"""Discourse: topics with their posts, or posts alone, as its interface gives them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text, plain_text
from rejoinder.exports.rows import (
    FAULTS,
    Layout,
    Shape,
    documents,
    first_of,
    first_shapes,
    id_of,
    item_of,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_TOPICS, _TOPIC = ("", "item"), ({"post_stream"}, {"archetype", "category_id", "chunk_size"})
_POSTS = Layout(("", "item", "latest_posts.item", "posts.item"), [{"post_number", "topic_id"}])
_LISTED = Layout(
    ("topic_list.topics.item", "topics.item", "", "item"), [{"id", "category_id", "posts_count"}]
)
_CATEGORIES = Layout(("category_list.categories.item", "categories.item"), [{"id", "name"}])
_SMALL_ACTION, _WHISPER = 3, 4
_QUOTES = "aside, blockquote, details.elided, .lightbox-wrapper .meta, .quote-controls"
_QUOTED = re.compile(r'<aside\b([^<>]*)>|\[quote="[^"\]]*"\]')
_OF_QUOTES = re.compile(r'\bclass="quote\b')
_ORIGIN = re.compile(r'(?:data-|\b)(post|topic)(?:="|:) ?(\d+)')
_QUOTE_MARK = re.compile(r"\[(?:quote\b[^\[\]]*|/quote)\]")


def _recognises(files: Files) -> bool:
    return any((_topics(keys), _POSTS.path(keys)) != (None, None) for keys in first_shapes(files))


def _topics(keys: Shape) -> str | None:
    """Returns where topics are that hold their posts."""
    for path in _TOPICS:
        posts = keys.get(f"{path}.posts.item".lstrip("."), set())
        if {"id", "title"} <= keys.get(path, set()) and "post_number" in posts:
            return path
    return path_of(keys, _TOPICS, *_TOPIC)


def _items(files: Files) -> Iterator[Item]:
    names = _pairs(_CATEGORIES.rows(files), "name")
    listed = (row for row in _LISTED.rows(files) if _topics(shape(files, row[0])) is None)
    categories = _pairs(listed, "category_id")
    for name in documents(files):
        keys = shape(files, name)
        topics, posts = _topics(keys), _POSTS.path(keys)
        if topics is not None:
            for number, row in rows(files, name, topics):
                yield from _topic(name, number, row, names)
        elif posts is not None:
            for number, row in rows(files, name, posts):
                topic = str(row.get("topic_id")) if isinstance(row, dict) else ""
                of = {"category_id": categories.get(topic)}
                yield item_of(name, number, "Discourse", _post, row, of, names)


def _pairs(found: Iterable[tuple[str, int, Any]], key: str) -> dict[str, str]:
    return {
        str(row["id"]): str(row[key])
        for _, _, row in found
        if isinstance(row, dict) and row.get("id") and row.get(key)
    }


def _topic(name: str, number: int, row: Any, names: Mapping[str, str]) -> Iterator[Item]:
    try:
        posts = list_of(row["posts"] if "posts" in row else row["post_stream"]["posts"])
    except FAULTS as error:
        yield no_message(name, number, "Discourse", error)
        return
    for place, post in enumerate(posts, 1):
        yield item_of(name, place, "Discourse", _post, post, row, names)


def _post(row: Any, topic: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    thread = id_of(row, "topic_id") if row.get("topic_id") else id_of(topic)
    place, kind = int(row["post_number"]), row.get("post_type")
    category = str(row.get("category_id") or topic.get("category_id") or "discourse")
    gone = first_of(row, "deleted_at", "user_deleted", "hidden")
    parent = _answered(row, thread, place)
    return Message(
        id=f"{thread}/{place}",
        text="" if gone else _text(row),
        parent=f"{thread}/{parent}" if parent else None,
        thread=thread,
        author=first_of(row, "username", "user_id"),
        time=seconds(row.get("created_at")),
        source=names.get(category, category),
        is_bot=(row.get("user_id") or 0) < 0,
        is_system=kind == _SMALL_ACTION or bool(row.get("action_code")),
        is_private=kind == _WHISPER or topic.get("archetype") == "private_message",
        edited=(row.get("version") or 1) > 1,
    )


def _answered(row: Mapping[str, Any], topic: str, place: int) -> int | None:
    """Returns the number of the post that one answers, or else quotes, in its topic."""
    if row.get("reply_to_post_number"):
        number = int(row["reply_to_post_number"])
        return number if number != place else None
    for quote in _QUOTED.finditer(row.get("cooked") or row.get("raw") or ""):
        if quote[1] is not None and not _OF_QUOTES.search(quote[1]):
            continue
        origin = dict(_ORIGIN.findall(quote[0]))
        if origin.get("topic") == topic and 0 < int(origin.get("post", 0)) < place:
            return int(origin["post"])
    return None


def _text(row: Mapping[str, Any]) -> str:
    if row.get("cooked"):
        return plain_text(row["cooked"], without=_QUOTES)
    return markdown_text(_unquoted(row.get("raw") or ""), html=True)


def _unquoted(text: str) -> str:
    """Returns a text without its quotes, which may be within others.

    >>> _unquoted("[quote]a [quote=b]c[/quote][/quote]d[/quote] [quote]e")
    'd[/quote] [quote]e'
    """
    kept, begun, end = list[str](), list[int](), 0
    for mark in _QUOTE_MARK.finditer(text):
        kept.append(text[end : mark.start()])
        end = mark.end()
        if begun and mark[0] == "[/quote]":
            del kept[begun.pop() :]
            continue
        if mark[0] != "[/quote]":
            begun.append(len(kept))
        kept.append(mark[0])
    return "".join([*kept, text[end:]])


DISCOURSE = ExportFormat(
    "discourse",
    "Discourse (topics or posts, JSON)",
    "https://docs.discourse.org/#tag/Topics/operation/getTopic",
    _recognises,
    lambda files: by_time(_items(files)),
)
