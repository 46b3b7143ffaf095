"""Stack Exchange's interface: pages of questions, answers and comments, or these in one another."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from rejoinder.corpus.exports.base import Item, Message
from rejoinder.corpus.exports.files import Files
from rejoinder.corpus.exports.markup import markdown_text, plain_text
from rejoinder.corpus.exports.roots import Roots
from rejoinder.corpus.exports.rows import (
    FAULTS,
    documents,
    id_text,
    list_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_PATHS = ("items.item", "item", "")
_POST = ({"question_id", "creation_date", "owner"}, {"answer_id", "creation_date", "owner"})
_COMMENT = ({"comment_id", "post_id", "creation_date"},)
_SITE = re.compile(r"https?://([\w.-]+)/")
_ID = "question_id"
_QUESTION = re.compile(r"/questions/(\d+)/")


def pages(files: Files) -> list[tuple[str, str]]:
    """Returns names of files and the paths to rows in them; comments come last."""
    names = [(name, shape(files, name)) for name in documents(files)]
    found = [
        (name, path_of(keys, _PATHS, *kinds)) for kinds in (_POST, _COMMENT) for name, keys in names
    ]
    return [(name, path) for name, path in found if path is not None]


def messages_of_pages(files: Files) -> Iterator[Item]:
    """Yields what pages hold, in their order."""
    questions = Roots()
    for name, path in pages(files):
        for number, row in rows(files, name, path):
            yield from _items(name, number, row, files.title, questions)


def _items(name: str, number: int, row: Any, title: str, questions: Roots) -> Iterator[Item]:
    """Yields a post or a comment, and what it holds."""
    try:
        id_ = row["post_id" if "comment_id" in row else "answer_id" if "answer_id" in row else _ID]
        known = {"link": row.get("link"), "question_id": row.get(_ID), "post_id": id_}
        inner = [*list_of(row.get("answers")), *list_of(row.get("comments"))]
        yield _message(row, title, questions)
    except FAULTS as error:
        yield no_message(name, number, "Stack Exchange", error)
        return
    for one in inner:
        held = {**known, **one} if isinstance(one, dict) else one
        yield from _items(name, number, held, title, questions)


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
        author=unescape(author) if author else id_text(owner.get("user_id")),
        time=seconds(row["creation_date"]),
        source=site,
        link=f"https://{site}/q/{key}" if of_link and key.isdigit() else None,
        is_bot=owner.get("user_id") == -1,
        edited="last_edit_date" in row or row.get("edited") is True,
    )


def _place(row: Any, questions: Roots) -> tuple[str, int | None, int]:
    """Returns the key of a post or a comment, the post that it answers, and their question."""
    if "comment_id" in row:
        post = int(row["post_id"])
        of_link = _QUESTION.search(row.get("link") or "")
        question = int(row.get(_ID) or (of_link[1] if of_link else questions.of(post)))
        return f"comment/{int(row['comment_id'])}", post, question
    question = int(row.get(_ID) or row["answer_id"])
    if "answer_id" not in row:
        return str(question), None, question
    questions.add(int(row["answer_id"]), to=question)
    return str(int(row["answer_id"])), question, question
