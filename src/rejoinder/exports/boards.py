"""Reads Reddit, Hacker News, and the corpora of ConvoKit, many of them from Reddit.

Reddit: dumps of submissions together with dumps of their comments, or pages as JSON (a submission
with its comments, or any listing). Comments without submissions are not an export: extraction reads
them directly.

Hacker News: items of its API, or nested items of its search API. ConvoKit: an utterance on each
line.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from typing import Any

import msgspec

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, Message, Roots, by_time, time_of
from rejoinder.exports.files import Files
from rejoinder.exports.markup import markdown_text, plain_text

# Reddit

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


_DECODER = msgspec.json.Decoder(Row, strict=False)


def _recognises(files: Files) -> bool:
    if any(_PAGES.places(files)):
        return True
    names = _names(files)
    some = dict.fromkeys([*names[: rows.LOOKED_AT], *names[-rows.LOOKED_AT :]])
    kinds = {kind for name in some for kind in _kinds(files, name)}
    return kinds == {"submission", "comment"}


def _names(files: Files) -> Sequence[str]:
    if len(files.names) == 1:
        return files.names
    named = [(name, name.lower().rpartition("/")[2]) for name in files.names]
    return [name for name, file in named if "." not in file or file.rpartition(".")[2] in _SUFFIXES]


def _kinds(files: Files, name: str) -> set[str]:
    """Returns the kinds of the first lines of a file: submissions, comments, or unknown."""
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
        yield from by_time(_page_items(files))
        return
    kinds = {name: _kinds(files, name) for name in _names(files)}
    submissions = [name for name in kinds if "submission" in kinds[name]]
    comments = [name for name in kinds if kinds[name] == {"comment"}]
    yield from merge(_items(files, submissions), _items(files, comments), key=time_of)


def _items(files: Files, names: Sequence[str]) -> Iterator[Item]:
    for name in names:
        with files.open(name) as file:
            lines = iter(partial(file.readline, _LONGEST), b"")
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield rows.item_of(name, number, _of_line, line)


def _of_line(line: bytes) -> Message:
    try:
        row = _DECODER.decode(line)
    except msgspec.DecodeError:  # half a surrogate pair, for example
        return _of_tree(rows.loads(line.decode("utf-8", "replace")))
    return _message(row)


def _of_tree(tree: Any) -> Message:
    return _message(msgspec.convert(tree, Row, strict=False))


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
        time=rows.seconds(row.created_utc),
        source=row.subreddit or "reddit",
        link=f"https://www.reddit.com{row.permalink}" if row.permalink else None,
        is_bot=author in _BOTS,
        edited=row.edited not in (None, False, 0, "", "false", "False"),
    )


def _full(name: str | None) -> str | None:
    """Returns the id of a message by its name: submissions and comments are numbered separately."""
    if not name:
        return None
    return f"post/{name[3:]}" if name.startswith("t3_") else name.removeprefix("t1_")


def reddit_text(text: str) -> str:
    """Returns the text of a message of Reddit, empty for one that was deleted."""
    return "" if text.strip() in _GONE else markdown_text(html.unescape(text))


# https://arxiv.org/abs/2001.08435
REDDIT = ExportFormat(
    "reddit",
    "Reddit (submissions with comments, JSON)",
    _recognises,
    _read,
    is_public=True,
)


_PAGES = rows.Layout(("item.data.children.item", "data.children.item"), [{"kind", "data"}])
_THINGS = ("t1", "t3")
"""Kinds of comments and submissions."""


def _page_items(files: Files) -> Iterator[Item]:
    for name, path in _PAGES.places(files):
        for number, data in enumerate(_things(files, name, path), 1):
            yield rows.item_of(name, number, _of_tree, data)


def _things(files: Files, name: str, path: str) -> Iterator[Any]:
    """Yields submissions and comments. A comment holds its answers, except collapsed answers."""
    for _, child in rows.rows(files, name, path):
        waiting = [child]
        while waiting:
            thing = waiting.pop()
            if not isinstance(thing, dict):
                yield thing
            elif thing.get("kind") in _THINGS:
                yield thing.get("data")
                waiting += reversed(_answers(thing.get("data")))


def _answers(data: Any) -> list[Any]:
    for key in ("replies", "data", "children"):
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, list) else []


# Hacker News

_TIMES = ("time", "created_at_i", "created_at")
_ITEMS = rows.Layout(
    ("", "item", "hits.item"),
    (
        {"id", "by", "time", "type"},
        *({"id", author, "children", time} for author in ("author", "by") for time in _TIMES),
        *({"objectID", "created_at_i", text} for text in ("_tags", "comment_text", "story_text")),
    ),
)
_PART = "pollopt"
"""Type of an option in a poll, which answers nothing."""


def _with_answers(row: Any, above: Any, roots: Roots) -> Iterator[rows.Part]:
    inner = rows.list_of(row.get("children"))
    yield partial(_hackernews_message, row, above, roots)
    for child in inner:
        if not isinstance(child, int):  # search gives ids alone
            yield partial(_with_answers, child, row["id"], roots)


def _hackernews_message(row: dict[str, Any], above: Any, roots: Roots) -> Message:
    id_ = int(rows.id_of(row, "id" if "id" in row else "objectID"))
    parent = int(row.get("parent") or row.get("parent_id") or row.get("poll") or above or 0)
    story, kind = int(row.get("story_id") or 0), row.get("type")
    if parent == id_:
        raise ValueError(f"item {id_} answers itself")
    if parent:
        roots.add(id_, to=story or parent)
    gone = row.get("deleted") or row.get("dead")
    return Message(
        id=str(id_),
        text="" if gone else _hackernews_text(row),
        parent=str(parent) if parent and kind != _PART else None,
        thread=str(roots.of(id_)),
        author=rows.first_of(row, "by", "author"),
        time=rows.seconds(next((row[key] for key in _TIMES if row.get(key)), None)),
        source="hackernews",
        link=f"https://news.ycombinator.com/item?id={id_}",
        is_system=kind == _PART,
    )


def _hackernews_text(row: dict[str, Any]) -> str:
    said = row.get("text") or row.get("comment_text") or row.get("story_text") or ""
    lines = plain_text(said).split("\n")
    text = "\n".join(line for line in lines if not line.startswith(">"))
    return f"{plain_text(row.get('title') or '')}\n{text}".strip()


# https://github.com/HackerNews/API
HACKERNEWS = ExportFormat(
    "hackernews",
    "Hacker News (items, JSON)",
    _ITEMS.recognises,
    lambda files: by_time(_ITEMS.items(files, _with_answers, None, Roots())),
    is_public=True,
)


# ConvoKit

_NAMED = rows.Layout(
    ("", "item"),
    [
        {"id", "text", speaker, root}
        for speaker in ("speaker", "user")
        for root in ("conversation_id", "root")
    ],
)
_UTTERANCES = rows.Layout(
    _NAMED.paths, [keys | {one} for keys in _NAMED.keys for one in ("reply-to", "reply_to")]
)


def _corpora(files: Files) -> Iterator[tuple[str, str]]:
    """Yields the files of utterances, and the path to the utterances in each."""
    for name in rows.documents(files):
        is_named = name.rpartition("/")[2].startswith("utterances")
        path = (_NAMED if is_named else _UTTERANCES).path(rows.shape(files, name))
        if path is not None and (is_named or len(files.names) == 1):
            yield name, path


def _read_convokit(files: Files) -> Iterator[Item]:
    for name, path in _corpora(files):
        corpus = name.rpartition("/")[0].rpartition("/")[2] or files.title
        for number, row in rows.rows(files, name, path):
            yield rows.item_of(name, number, _utterance, row, corpus)


def _utterance(row: Mapping[str, Any], corpus: str) -> Message:
    meta, time = row.get("meta"), row.get("timestamp")
    subreddit = meta.get("subreddit") if isinstance(meta, dict) else None
    text = str(row.get("text") or "")
    id_, parent = rows.id_of(row), _other(row, "reply-to", "reply_to")
    author = _other(row, "speaker", "user") or ""
    return Message(
        id=id_,
        text=reddit_text(text) if subreddit else text.strip(),
        parent=parent if parent != id_ else None,
        thread=_other(row, "conversation_id", "root"),
        author="" if author == "[deleted]" else author,
        time=None if time == "None" else rows.seconds(time),
        source=str(subreddit or corpus),
    )


def _other(row: Mapping[str, Any], *keys: str) -> str | None:
    """Returns the id under the first key that has one."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, dict):  # a speaker with what is known of them
            value = value.get("id") or value.get("name")
        if value is not None and value != "" and value != "None":
            return rows.id_of({key: value}, key)
    return None


# https://convokit.cornell.edu/documentation/data_format.html
CONVOKIT = ExportFormat(
    "convokit",
    "ConvoKit",
    lambda files: any(_corpora(files)),
    _read_convokit,
)
