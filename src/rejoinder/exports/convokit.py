"""ConvoKit: a corpus with an utterance in each line."""

from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.reddit import reddit_text
from rejoinder.exports.rows import Layout, documents, id_of, item_of, rows, seconds, shape

_NAMED = Layout(
    ("", "item"),
    [
        {"id", "text", speaker, root}
        for speaker in ("speaker", "user")
        for root in ("conversation_id", "root")
    ],
)
_UTTERANCES = Layout(
    _NAMED.paths, [keys | {one} for keys in _NAMED.keys for one in ("reply-to", "reply_to")]
)


def _recognises(files: Files) -> bool:
    return any(_places(files))


def _places(files: Files) -> Iterator[tuple[str, str]]:
    """Yields the files of utterances, and where they are in them."""
    for name in documents(files):
        is_named = name.rpartition("/")[2].startswith("utterances")
        path = (_NAMED if is_named else _UTTERANCES).path(shape(files, name))
        if path is not None and (is_named or len(files.names) == 1):
            yield name, path


def _read(files: Files) -> Iterator[Item]:
    for name, path in _places(files):
        corpus = name.rpartition("/")[0].rpartition("/")[2] or files.title
        for number, row in rows(files, name, path):
            yield item_of(name, number, "ConvoKit", _message, row, corpus)


def _message(row: Mapping[str, Any], corpus: str) -> Message:
    meta = row.get("meta")
    subreddit = meta.get("subreddit") if isinstance(meta, dict) else None
    text = str(row.get("text") or "")
    id_, parent = id_of(row), _other(row, "reply-to", "reply_to")
    author = _other(row, "speaker", "user") or ""
    return Message(
        id=id_,
        text=reddit_text(text) if subreddit else text.strip(),
        parent=parent if parent != id_ else None,
        thread=_other(row, "conversation_id", "root"),
        author="" if author == "[deleted]" else author,
        time=_time(row.get("timestamp")),
        source=str(subreddit or corpus),
    )


def _other(row: Mapping[str, Any], *keys: str) -> str | None:
    """Returns the id under the first of the keys that has one."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, dict):  # a speaker with what is known of them
            value = value.get("id") or value.get("name")
        if value is not None and value != "" and value != "None":
            return id_of({key: value}, key)
    return None


def _time(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            return seconds(float(value))
        except ValueError:
            return seconds(value) if value != "None" else None
    return seconds(value)


CONVOKIT = ExportFormat(
    "convokit",
    "ConvoKit",
    "https://convokit.cornell.edu/documentation/data_format.html",
    _recognises,
    _read,
)
