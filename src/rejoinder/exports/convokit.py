"""ConvoKit: a corpus with an utterance in each line."""

from collections.abc import Iterator, Mapping
from typing import Any

from rejoinder.exports.base import ExportFormat, Item, Message
from rejoinder.exports.files import Files
from rejoinder.exports.reddit import reddit_text
from rejoinder.exports.rows import (
    FAULTS,
    documents,
    id_of,
    no_message,
    path_of,
    rows,
    seconds,
    shape,
)

_NAMED = tuple(
    {"id", "text", speaker, root}
    for speaker in ("speaker", "user")
    for root in ("conversation_id", "root")
)
_UTTERANCE = tuple(keys | {answered} for keys in _NAMED for answered in ("reply-to", "reply_to"))


def _recognises(files: Files) -> bool:
    return any(path is not None for _, path in _files(files))


def _files(files: Files) -> Iterator[tuple[str, str | None]]:
    """Yields the files of utterances, and where they are in them."""
    for name in documents(files):
        if name.rpartition("/")[2].startswith("utterances"):
            yield name, path_of(shape(files, name), ("", "item"), *_NAMED)
        elif len(files.names) == 1:
            yield name, path_of(shape(files, name), ("", "item"), *_UTTERANCE)


def _read(files: Files) -> Iterator[Item]:
    for name, path in _files(files):
        if path is not None:
            corpus = name.rpartition("/")[0].rpartition("/")[2] or files.title
            for number, row in rows(files, name, path):
                try:
                    yield _message(row, corpus)
                except FAULTS as error:
                    yield no_message(name, number, "ConvoKit", error)


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
