"""Pages of HTML, which Telegram Desktop writes unless it is told otherwise."""

from pathlib import Path

from export_samples import write
from rejoinder.exports import FORMATS, format_of_export
from rejoinder.exports.base import Malformed, Message
from rejoinder.exports.files import opened

_HEAD = """<!DOCTYPE html><html><head><meta charset="utf-8"/>
<title>Exported Data</title></head><body><div class="page_wrap"><div class="page_header">
<div class="content"><div class="text bold">Users &amp; friends</div></div></div>
<div class="page_body chat_page"><div class="history">"""
_NAME = '<div class="from_name">{}</div>'
_FIRST = "Ann via @gif"
_DATE = '<div class="message service" id="message-1"><div class="body details">1 March</div></div>'
_PINNED = (
    '<div class="message service" id="message3"><div class="body details">Ann pinned</div></div>'
)


def _message(number: int, inner: str, *, joined: bool = False, title: str | None = None) -> str:
    title = title or f"01.03.2024 10:00:0{number % 10} UTC+01:00"
    return (
        f'<div class="message default clearfix{" joined" if joined else ""}" id="message{number}">'
        '<div class="pull_left userpic_wrap"><div class="initials">A</div></div>'
        f'<div class="body"><div class="pull_right date details" title="{title}">10:00</div>'
        f"{inner}</div></div>"
    )


def _reply(to: str) -> str:
    return f'<div class="reply_to details">In reply to <a href="{to}">this message</a></div>'


def _text(html: str) -> str:
    return f'<div class="text">{html}</div>'


_FORWARDED = (
    '<div class="pull_left forwarded userpic_wrap"></div><div class="forwarded body">'
    '<div class="from_name">Eve <span class="date details" title="x"> 01.02.2024</span></div>'
    '<div class="text">As I said</div></div>'
)
PAGES = {
    "messages.html": _HEAD
    + _DATE
    + _message(1, _NAME.format(_FIRST) + _text("Which <strong>port</strong>?<br>I forgot"))
    + _message(2, _text("Anybody?"), joined=True)
    + _PINNED,
    "messages2.html": _HEAD
    + _message(4, _NAME.format("Bob") + _reply("messages.html#go_to_message1")
               + _text("<blockquote>Which</blockquote>See <a href='https://a.b'>this</a>"))
    + _message(5, _NAME.format("Bob") + _FORWARDED)
    + _message(6, '<div class="media_wrap clearfix"></div>', joined=True),
    "messages10.html": _HEAD
    + _message(7, _NAME.format("Ann") + _reply("#go_to_message6") + _text("Thanks"),
               title="01.03.2024 09:00:07 UTC"),
}  # fmt: skip
_NINE = 1709283600.0
"""Nine o'clock on 1 March 2024."""


def _expected(number: int, author: str, text: str, parent: int | None = None) -> Message:
    place = "Users & friends"
    return Message(
        id=f"{place}/{number}",
        parent=f"{place}/{parent}" if parent else None,
        author=author,
        text=text,
        time=_NINE + number if author else None,
        source=place,
        is_system=not author,
    )


def test_pages_have_the_messages_of_a_chat(tmp_path: Path):
    export = write(PAGES, tmp_path)
    assert format_of_export(export) is FORMATS["telegram"]
    with opened(export) as files:
        assert list(FORMATS["telegram"].read(files)) == [
            _expected(1, "Ann", "Which port?\nI forgot"),
            _expected(2, "Ann", "Anybody?"),
            _expected(3, "", "Ann pinned"),
            _expected(4, "Bob", "See this", 1),
            _expected(5, "Bob", "As I said"),
            _expected(6, "Bob", ""),
            _expected(7, "Ann", "Thanks", 6),
        ]


def test_chats_of_an_account_have_a_folder_each(tmp_path: Path):
    page = PAGES["messages.html"] + _message(8, _text("x"), title="yesterday")
    export = write({"chats/1/messages.html": page, "chats/2/messages.html": page}, tmp_path)
    with opened(export) as files:
        items = list(FORMATS["telegram"].read(files))
    messages = [item for item in items if isinstance(item, Message)]
    assert len({message.id for message in messages}) == len(messages) == 6
    assert sum(isinstance(item, Malformed) for item in items) == 2
