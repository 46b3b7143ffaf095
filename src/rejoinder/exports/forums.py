"""Reads forums: Discourse and Stack Exchange.

Discourse: topics with their posts, or only posts, from its API. Stack Exchange: the dump of a site,
a folder per site, or pages of its API with questions, answers and comments, separate or nested.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from heapq import merge
from html import unescape
from typing import Any

from msgspec.structs import replace

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, Roots, by_time, time_of
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text, plain_text

# Discourse

_TOPICS = rows.Layout(
    ("", "item"),
    (
        {"id", "title", "posts.item.post_number"},
        {"post_stream"},
        {"archetype", "category_id", "chunk_size"},
    ),
)
"""Topics that hold their posts."""
_POSTS = rows.Layout(
    ("", "item", "latest_posts.item", "posts.item"),
    [{"post_number", "topic_id"}],
    unless=[_TOPICS],
)
_LISTED = rows.Layout(
    ("topic_list.topics.item", "topics.item", "", "item"),
    [{"id", "category_id", "posts_count"}],
    unless=[_TOPICS],
)
_CATEGORIES = rows.Layout(("category_list.categories.item", "categories.item"), [{"id", "name"}])
_SMALL_ACTION, _WHISPER = 3, 4
_QUOTES = "aside, blockquote, details.elided, .lightbox-wrapper .meta, .quote-controls"
_QUOTED = re.compile(r'<aside\b([^<>]*)>|\[quote="[^"\]]*"\]')
_OF_QUOTES = re.compile(r'\bclass="quote\b')
_ORIGIN = re.compile(r'(?:data-|\b)(post|topic)(?:="|:) ?(\d+)')
_QUOTE_MARK = re.compile(r"\[(?:quote\b[^\[\]]*|/quote)\]")


def _items(files: Files) -> Iterator[Item]:
    names = _CATEGORIES.names(files, lambda row: row.get("name"))
    categories = _LISTED.names(files, lambda row: row.get("category_id"))
    yield from _POSTS.messages(files, _post_alone, categories, names)
    yield from _TOPICS.items(files, _topic, names)


def _topic(row: Any, names: Mapping[str, str]) -> Iterator[rows.Part]:
    for post in rows.list_of(row["posts"] if "posts" in row else row["post_stream"]["posts"]):
        yield partial(_post, post, row, names)


def _post_alone(row: Any, categories: Mapping[str, str], names: Mapping[str, str]) -> Message:
    return _post(row, {"category_id": categories.get(str(row.get("topic_id")))}, names)


def _post(row: Any, topic: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    thread = rows.id_of(row, "topic_id") if row.get("topic_id") else rows.id_of(topic)
    place, kind = int(row["post_number"]), row.get("post_type")
    category = str(row.get("category_id") or topic.get("category_id") or "discourse")
    gone = rows.first_of(row, "deleted_at", "user_deleted", "hidden")
    parent = _answered(row, thread, place)
    return Message(
        id=f"{thread}/{place}",
        text="" if gone else _text(row),
        parent=f"{thread}/{parent}" if parent else None,
        thread=thread,
        author=rows.first_of(row, "username", "user_id"),
        time=rows.seconds(row.get("created_at")),
        source=names.get(category, category),
        is_bot=(row.get("user_id") or 0) < 0,
        is_system=kind == _SMALL_ACTION or bool(row.get("action_code")),
        is_private=kind == _WHISPER or topic.get("archetype") == "private_message",
        edited=(row.get("version") or 1) > 1,
    )


def _answered(row: Mapping[str, Any], topic: str, place: int) -> int | None:
    """Returns the number of the post in its topic that a post answers, or else quotes."""
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
    """Returns a text without its quotes, which may be nested.

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


# https://docs.discourse.org/#tag/Topics/operation/getTopic
DISCOURSE = ExportFormat(
    "discourse",
    "Discourse (topics or posts, JSON)",
    lambda files: rows.recognises(files, _TOPICS, _POSTS),
    lambda files: by_time(_items(files)),
)


# Stack Exchange

_POSTS_FILE = "posts.xml"
_QUESTION, _ANSWER = "1", "2"
_COMMUNITY = "-1"
"""The user who posts for the site itself."""
_Row = Mapping[str, str]
_PATHS = ("items.item", "item", "")
_KINDS = (
    rows.Layout(
        _PATHS,
        ({"question_id", "creation_date", "owner"}, {"answer_id", "creation_date", "owner"}),
    ),
    rows.Layout(_PATHS, [{"comment_id", "post_id", "creation_date"}]),
)
"""Posts, and comments."""


def _is_dump(files: Files) -> bool:
    return any(b"<posts" in files.head(name) for name in _named(files, _POSTS_FILE)[:3])


def _named(files: Files, file: str) -> list[str]:
    if len(files.names) == 1 and file == _POSTS_FILE:
        return [*files.names]
    return [name for name in files.names if name.lower().rpartition("/")[2] == file]


def _read_stackexchange(files: Files) -> Iterator[Item]:
    if not _is_dump(files):
        yield from by_time(_pages(files))
        return
    folders = [name.rpartition("/")[0] for name in _named(files, _POSTS_FILE)]
    for folder in folders:
        yield from _Site(files, folder, is_only=len(folders) == 1).messages()


class _Site:
    """Reads posts and comments together, in the order of time."""

    def __init__(self, files: Files, folder: str, *, is_only: bool) -> None:
        self._files = files
        self._folder = folder
        self._is_only = is_only  # then its files may be in several folders
        self._name = folder.rpartition("/")[2] or files.title
        self._questions = Roots()
        self._names = {
            row["Id"]: row["DisplayName"]
            for _, _, row in self._rows("users.xml")
            if {"Id", "DisplayName"} <= row.keys()
        }

    def messages(self) -> Iterator[Item]:
        """Yields the posts and the comments."""
        for item in merge(
            self._items(_POSTS_FILE, self._post),
            self._items("comments.xml", self._comment),
            key=time_of,
        ):
            if isinstance(item, Message) and item.thread is None:
                # `merge` reads a comment before some of the posts before it
                post = int((item.parent or "").rpartition("/")[2])
                yield replace(item, thread=f"{self._name}/{self._questions.of(post)}")
            else:
                yield item

    def _rows(self, file: str) -> Iterator[tuple[str, int, _Row]]:
        """Yields name, number and attributes of the rows of a file, which may be missing."""
        for name in _named(self._files, file):
            if not self._is_only and name.rpartition("/")[0] != self._folder:
                continue
            for number, row in rows.xml_items(self._files, name, "row"):
                yield name, number, row.attrib

    def _items(self, file: str, read: Callable[[_Row], Message]) -> Iterator[Item]:
        for name, number, row in self._rows(file):
            yield rows.item_of(name, number, read, row)

    def _post(self, row: _Row) -> Message:
        kind, id_, parent = row["PostTypeId"], int(row["Id"]), None
        if kind == _ANSWER:
            parent = int(row["ParentId"])
            self._questions.add(id_, to=parent)
        title = unescape(row.get("Title", "")) if kind == _QUESTION else ""
        body = plain_text(row.get("Body", ""), without="blockquote")
        return Message(
            id=f"{self._name}/{id_}",
            text=f"{title}\n{body}".strip(),
            parent=None if parent is None else f"{self._name}/{parent}",
            thread=f"{self._name}/{parent or id_}",
            author=self._author(row.get("OwnerUserId"), row.get("OwnerDisplayName")),
            time=rows.seconds(row.get("CreationDate")),
            source=self._name,
            link=f"https://{self._name}/q/{id_}" if "." in self._name else None,
            is_bot=row.get("OwnerUserId") == _COMMUNITY,
            is_system=kind not in (_QUESTION, _ANSWER),
            edited="LastEditDate" in row,
        )

    def _comment(self, row: _Row) -> Message:
        return Message(
            id=f"{self._name}/comment/{int(row['Id'])}",
            text=markdown_text(row.get("Text", "")),
            parent=f"{self._name}/{int(row['PostId'])}",
            author=self._author(row.get("UserId"), row.get("UserDisplayName")),
            time=rows.seconds(row.get("CreationDate")),
            source=self._name,
            is_bot=row.get("UserId") == _COMMUNITY,
        )

    def _author(self, id_: str | None, name: str | None) -> str:
        return self._names.get(id_ or "") or name or id_ or ""


# https://meta.stackexchange.com/questions/2677
STACKEXCHANGE = ExportFormat(
    "stackexchange",
    "Stack Exchange (dump of a site, or JSON of its interface)",
    lambda files: _is_dump(files) or any(any(kind.places(files)) for kind in _KINDS),
    _read_stackexchange,
    is_public=True,
)


_SITE = re.compile(r"https?://([\w.-]+)/")
_ID = "question_id"
_PAGE = re.compile(r"/questions/(\d+)/")


def _pages(files: Files) -> Iterator[Item]:
    """Yields the content of pages; comments come last."""
    questions = Roots()
    for kind in _KINDS:
        yield from kind.items(files, _with_inner, files.title, questions)


def _with_inner(row: Any, title: str, questions: Roots) -> Iterator[rows.Part]:
    """Yields a post or a comment, and everything nested in it."""
    id_ = row["post_id" if "comment_id" in row else "answer_id" if "answer_id" in row else _ID]
    known = {"link": row.get("link"), "question_id": row.get(_ID), "post_id": id_}
    inner = [*rows.list_of(row.get("answers")), *rows.list_of(row.get("comments"))]
    yield _message(row, title, questions)
    for one in inner:
        held = {**known, **one} if isinstance(one, dict) else one
        yield partial(_with_inner, held, title, questions)


def _message(row: Any, title: str, questions: Roots) -> Message:
    key, parent, question = _place(row, questions)
    owner, link = row.get("owner") or {}, row.get("link") or ""
    of_link = _SITE.match(link) or _SITE.match(owner.get("link") or "")
    site = of_link[1] if of_link else title
    if row.get("body") is not None:
        text = plain_text(row["body"], without="blockquote")
    else:
        text = markdown_text(unescape(row.get("body_markdown") or ""))
    name = unescape(row.get("title") or "") if parent is None else ""
    author = owner.get("display_name")
    return Message(
        id=f"{site}/{key}",
        text=f"{name}\n{text}".strip(),
        parent=None if parent is None else f"{site}/{parent}",
        thread=f"{site}/{question}",
        author=unescape(author) if author else rows.id_text(owner.get("user_id")),
        time=rows.seconds(row["creation_date"]),
        source=site,
        link=f"https://{site}/q/{key}" if of_link and key.isdigit() else None,
        is_bot=owner.get("user_id") == -1,
        edited="last_edit_date" in row or row.get("edited") is True,
    )


def _place(row: Any, questions: Roots) -> tuple[str, int | None, int]:
    """Returns the key of a post or a comment, the post that it answers, and their question."""
    if "comment_id" in row:
        post = int(row["post_id"])
        of_link = _PAGE.search(row.get("link") or "")
        question = int(row.get(_ID) or (of_link[1] if of_link else questions.of(post)))
        return f"comment/{int(row['comment_id'])}", post, question
    question = int(row.get(_ID) or row["answer_id"])
    if "answer_id" not in row:
        return str(question), None, question
    questions.add(int(row["answer_id"]), to=question)
    return str(int(row["answer_id"])), question, question
