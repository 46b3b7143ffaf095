"""Reddit: dumps of submissions together with those of their comments, or pages as JSON.

Comments alone are not an export: extraction reads them as they are.

Pages of Reddit as JSON: a submission with its comments, or whatever a page lists.
"""

import html
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import merge
from typing import Any

import msgspec

from rejoinder.exports.base import ExportFormat, Item, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text
from rejoinder.exports.rows import FAULTS, Layout, loads, no_message, rows, seconds

_LOOKED_AT = 20
_LONGEST = 1 << 26
_SUFFIXES = ("json", "jsonl", "ndjson", "zst", "gz", "xz", "bz2", "txt")
_GONE = ("[deleted]", "[removed]", "[ Removed by reddit ]", "[ Removed by Reddit ]")
_BOTS = ("AutoModerator",)


class Row(msgspec.Struct):
    """What is read of a submission or a comment."""

    id: str
    author: str | None = None
    subreddit: str | None = None
    created_utc: float | str | None = None
    title: str | None = None
    selftext: str | None = None
    body: str | None = None
    parent_id: str | None = None
    link_id: str | None = None
    permalink: str | None = None
    edited: bool | float | str | None = None


def _recognises(files: Files) -> bool:
    if any(_PAGES.places(files)):
        return True
    names = _names(files)
    some = dict.fromkeys([*names[:_LOOKED_AT], *names[-_LOOKED_AT:]])
    kinds = {kind for name in some for kind in _kinds(files, name)}
    return kinds == {"submission", "comment"}


def _names(files: Files) -> Sequence[str]:
    if len(files.names) == 1:
        return files.names
    named = [(name, name.lower().rpartition("/")[2]) for name in files.names]
    return [name for name, file in named if "." not in file or file.rpartition(".")[2] in _SUFFIXES]


def _kinds(files: Files, name: str) -> set[str]:
    """Returns what the first lines of a file are: submissions, comments, or nothing known."""
    kinds: set[str] = set()
    head = files.head(name)
    for line in head.split(b"\n") if head.startswith(b"{") else ():
        try:
            row = msgspec.json.decode(line)
        except (ValueError, RecursionError):  # also the line that the head ends in
            continue
        if isinstance(row, dict) and {"id", "subreddit", "author"} <= row.keys():
            if "title" in row and ("selftext" in row or "num_comments" in row):
                kinds.add("submission")
            elif "body" in row and ("link_id" in row or "parent_id" in row):
                kinds.add("comment")
    return kinds


def _read(files: Files) -> Iterator[Item]:
    if any(_PAGES.places(files)):
        as_row = partial(msgspec.convert, type=Row, strict=False)
        yield from by_time(
            _item(name, number, thing, as_row) for name, number, thing in things(files)
        )
        return
    kinds = {name: _kinds(files, name) for name in _names(files)}
    submissions = [name for name in kinds if "submission" in kinds[name]]
    comments = [name for name in kinds if kinds[name] == {"comment"}]
    yield from merge(_items(files, submissions), _items(files, comments), key=_time)


def _time(item: Item) -> float:
    return (item.time or 0.0) if isinstance(item, Message) else 0.0


def _items(files: Files, names: Sequence[str]) -> Iterator[Item]:
    decoder = msgspec.json.Decoder(Row, strict=False)
    for name in names:
        with files.open(name) as file:
            number = 0
            while line := file.readline(_LONGEST):
                number += 1
                if line.strip():
                    yield _item(name, number, line, partial(_row_of_line, decoder=decoder))


def _row_of_line(line: bytes, decoder: msgspec.json.Decoder[Row]) -> Row:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError:  # half a surrogate pair, for example
        return msgspec.convert(loads(line.decode("utf-8", "replace")), Row, strict=False)


def _item(name: str, number: int, content: Any, row_of: Callable[[Any], Row]) -> Item:
    try:
        return _message(row_of(content))
    except (*FAULTS, msgspec.MsgspecError, RecursionError) as error:
        return no_message(name, number, "Reddit", error)


def _message(row: Row) -> Message:
    if row.title is None and row.body is None:
        raise ValueError("neither a title nor a body")
    if row.body is None:
        id_, parent, link = f"post/{row.id.removeprefix('t3_')}", None, None
        text = f"{reddit_text(row.title or '')}\n{reddit_text(row.selftext or '')}".strip()
    else:
        id_, parent, link = row.id.removeprefix("t1_"), row.parent_id, row.link_id
        text = reddit_text(row.body)
    author = "" if row.author in (None, *_GONE) else str(row.author)
    return Message(
        id=id_,
        text=text,
        parent=_full(parent or link),
        thread=_full(link) or id_,
        author=author,
        time=_seconds(row.created_utc),
        source=row.subreddit or "reddit",
        link=f"https://www.reddit.com{row.permalink}" if row.permalink else None,
        is_bot=author in _BOTS,
        edited=row.edited not in (None, False, 0, "", "false", "False"),
    )


def _full(name: str | None) -> str | None:
    """Returns the id of a message by its name: submissions and comments are counted apart."""
    if not name:
        return None
    return f"post/{name[3:]}" if name.startswith("t3_") else name.removeprefix("t1_")


def _seconds(time: float | str | None) -> float | None:
    if isinstance(time, str) and time.replace(".", "", 1).isdigit():
        return float(time)
    return seconds(time)


def reddit_text(text: str) -> str:
    """Returns the text of a message of Reddit, empty for one that was deleted."""
    return "" if text.strip() in _GONE else markdown_text(html.unescape(text))


REDDIT = ExportFormat(
    "reddit",
    "Reddit (submissions with comments, JSON)",
    "https://arxiv.org/abs/2001.08435",
    _recognises,
    _read,
    is_public=True,
)


_PAGES = Layout(("item.data.children.item", "data.children.item"), [{"kind", "data"}])
_THINGS = ("t1", "t3")
"""Kinds of comments and submissions."""


def things(files: Files) -> Iterator[tuple[str, int, Any]]:
    """Yields submissions and comments with the names of their pages and their numbers there.

    A comment holds its answers. Those that a page only counts are not there.
    """
    for name, path in _PAGES.places(files):
        number = 0
        for _, child in rows(files, name, path):
            waiting = [child]
            while waiting:
                thing = waiting.pop()
                if not isinstance(thing, dict):
                    number += 1
                    yield name, number, thing
                elif thing.get("kind") in _THINGS:
                    number += 1
                    data = thing.get("data")
                    yield name, number, data
                    waiting += reversed(_answers(data))


def _answers(data: Any) -> list[Any]:
    for key in ("replies", "data", "children"):
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, list) else []
