"""WhatsApp: a text for each chat, its dates and clock as the phone shows them.

Nothing says which zone the times are of; they are taken as UTC.
"""

import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice, pairwise

from rejoinder.exports.base import ExportFormat, Item, Malformed, Message
from rejoinder.exports.files import Files

_UNSEEN = "[\u200e\u200f\u202a-\u202e\ufeff]*+"
_HEADER = re.compile(
    rf"{_UNSEEN}\[?{_UNSEEN}(\d{{1,4}}){_UNSEEN}([./年년-])\s?(\d{{1,2}}){_UNSEEN}[./月월-]\s?"
    r"(\d{1,4})"
    r"([^\d:\[\]\n]{1,12})(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?([^\d:\[\]\n]{0,8}?)"
    r"(?:\]:?\s?|\s[-\u2013]\s)(.*)"
)
"""A date and a clock, next to which a language may have words: `01/02/20 à 10:11`, `下午3:11`."""
_CLOCK_FIRST = re.compile(
    rf"\A({_UNSEEN}\[?)(\d\d?:\d\d[^\[\]\n]{{0,8}}?),?\s(\d\d?[./-]\d\d?[./-]\d+)(?=\]|\s-\s)"
)
"""The clock before the date, as on phones in Vietnam: `21:58, 01/03/2024 - `, and where messages
were copied by hand: `[9:58 PM, 3/1/2024] `."""
_MORNING = re.compile(
    r"\ba\.?\s?m\b|上午|午前|凌晨|早上|오전|\bص|π\.?μ|ق\.ظ|\bpg\b|\böö\b|\bsa\b", re.IGNORECASE
)
_AFTERNOON = re.compile(
    r"\bp\.?\s?m\b|下午|午後|中午|晚上|오후|\bم|μ\.?μ|ب\.ظ|\bptg\b|\bös\b|\bch\b", re.IGNORECASE
)
_AUTHOR = re.compile(r'([^:"]+):(?:[ \u200e\u200f]|(?=.?$)).*')
_MARKS = "\u200e\u200f\ufeff \t\n"
_INVISIBLE = ("\u200e", "\u200f")
"""Begins what WhatsApp itself writes on iPhones, such as `image omitted`."""
_NOTICE = "end-to-end encrypted"
_EDITED = re.compile(r"(?<!\s)\s*+(?:\u200e<[^<>:]*>|<This message was edited>)$")
_OMITTED = re.compile(r"<[^<>]*>")
_ATTACHED = re.compile(
    r"\A(?:\u200e[^\n/]+\.\w{2,5} \([^()\n]+\)|[^\n/]+\.\w{2,5} \((?:file attached|Datei angehängt"
    r"|archivo adjunto|arquivo anexado|fichier joint|file allegato|dosya ekli)\))"
    r"(?:\n|$)|\u200e?<[^<>:]{1,20}: [^<>]*\.\w{2,5}>\s?"
)
"""A file: `IMG-1.jpg (file attached)`, with a caption below, or `A caption <attached: 1.jpg>`."""
_DELETED = frozenset({
    "this message was deleted", "you deleted this message",
    "diese nachricht wurde gelöscht", "du hast diese nachricht gelöscht",
    "se eliminó este mensaje", "este mensaje fue eliminado", "eliminaste este mensaje",
    "mensagem apagada", "esta mensagem foi apagada", "você apagou esta mensagem",
    "ce message a été supprimé", "vous avez supprimé ce message",
    "questo messaggio è stato eliminato", "hai eliminato questo messaggio",
    "bu mesaj silindi", "bu mesajı sildiniz", "تم حذف هذه الرسالة",
    "tin nhắn này đã bị xóa", "tin nhắn này đã bị xoá",
    "bạn đã xóa tin nhắn này", "bạn đã xoá tin nhắn này",
    "이 메시지는 삭제되었습니다", "이 메시지를 삭제했습니다", "삭제한 메시지입니다",
    "这条消息已被删除", "信息已删除", "您已删除这条消息", "您删除这个信息",
    "此訊息已刪除", "您已刪除此訊息",
    "このメッセージは削除されました", "このメッセージを削除しました",
})  # fmt: skip
"""The texts of `revoked_msg_incoming` and `revoked_msg_outgoing` of Android and of iPhones."""
_OF_LOGS = ("<", "*", "-")
"""What logs of IRC have after a date and a clock."""
_Order = tuple[int, int, int]
_LOOKED_AT = 100_000
_ORDERS: dict[str, _Order] = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}
"""Places of year, month and day among the three numbers of a date."""


def _header(line: str) -> re.Match[str] | None:
    """Returns what begins a message, the date before the clock."""
    return _HEADER.match(_CLOCK_FIRST.sub(r"\1\3, \2", line, count=1))


def _recognises(files: Files) -> bool:
    return bool(_chats(files))


def _chats(files: Files) -> list[str]:
    heads = ((name, files.head(name).decode("utf-8", "replace")) for name in files.ending(".txt"))
    begun = ((name, _header(head)) for name, head in heads)
    return [name for name, begin in begun if begin and not begin[10].startswith(_OF_LOGS)]


def _read(files: Files) -> Iterator[Item]:
    for name in _chats(files):
        yield from _chat(files, name)


def _chat(files: Files, name: str) -> Iterator[Item]:
    first = islice(_rows(files, name), _LOOKED_AT)
    dates = ((*header[:4], header[8].strip()) for header, _ in first)
    order = _order([date for date, _ in groupby(dates)])
    folder, _, file = name.rpartition("/")
    chat = file.removesuffix(".txt")
    if chat == "_chat":  # as iPhones call the file of every chat
        chat = folder or files.path.stem
    for number, (header, lines) in enumerate(_rows(files, name), 1):
        try:
            time = _time(header, order)
        except ValueError as error:
            yield Malformed(name, number, f"no date ({error})")
            continue
        said = _AUTHOR.fullmatch(header[-1])
        line = header[-1][said.end(1) + 1 :].strip(" ") if said else header[-1]
        text = _ATTACHED.sub("", "\n".join([line, *lines]), count=1)
        plain = _EDITED.sub("", text).strip(_MARKS)
        is_gone = _OMITTED.fullmatch(plain) or plain.lower().rstrip(".。") in _DELETED
        yield Message(
            id=f"{chat}/{number}",
            author=said[1].strip(_MARKS) if said else "",
            time=time,
            text="" if is_gone else plain,
            source=chat,
            is_system=not said or _NOTICE in text or text.startswith(_INVISIBLE),
            edited=bool(_EDITED.search(text)),
        )


def _rows(files: Files, name: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yields the header of each message with the further lines of its text."""
    header: tuple[str, ...] | None = None
    lines: list[str] = []
    with files.open(name) as file:
        for line in io.TextIOWrapper(file, "utf-8-sig", "replace"):
            match = _header(line.rstrip("\r\n"))
            if match is None:
                lines.append(line.rstrip("\r\n"))
                continue
            if header is not None:
                yield header, lines
            header, lines = match.groups(default=""), []
    if header is not None:
        yield header, lines


def _order(found: Sequence[tuple[str, ...]]) -> _Order:
    """Returns the order of year, month and day of a file, by its first messages.

    Of each it takes the numbers with what stands between the first two, and the words after the
    clock.

    Numbers beyond 12 and 31 decide. Where there are none, dates that never go back do; then points
    stand for day first, and AM and PM in capitals for month first, as in the United States.
    """
    numbers = [(int(one), int(two), int(three)) for one, _, two, three, *_ in found]
    if any(len(date[0]) == 4 for date in found):
        return _ORDERS["ymd"]
    if any(date[0] > 12 for date in numbers):
        return _ORDERS["dmy"]
    if any(date[1] > 12 for date in numbers):
        return _ORDERS["mdy"]
    backward = {}
    for name in ("dmy", "mdy"):
        dates = [tuple(date[place] for place in _ORDERS[name]) for date in numbers]
        backward[name] = sum(after < before for before, after in pairwise(dates))
    if backward["dmy"] != backward["mdy"]:
        return _ORDERS[min(backward, key=backward.__getitem__)]
    american = all(date[1] == "/" and date[4] in ("AM", "PM") for date in found)
    return _ORDERS["mdy" if american else "dmy"]


def _time(header: tuple[str, ...], order: _Order) -> float:
    one, _, two, three, _, hours, minutes, seconds, *_ = header
    date = (int(one), int(two), int(three))
    year, month, day = (date[place] for place in order)
    hour, half = int(hours), _half(header)
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    time = datetime(
        year + (2000 if year < 100 else 0),
        month,
        day,
        hour,
        int(minutes),
        int(seconds or 0),
        tzinfo=UTC,
    )
    return time.timestamp()


def _half(header: tuple[str, ...]) -> str:
    """Returns "am", "pm", or nothing for a clock of 24 hours."""
    words = f"{header[4]} {header[8]}"
    return "am" if _MORNING.search(words) else "pm" if _AFTERNOON.search(words) else ""


WHATSAPP = ExportFormat(
    "whatsapp",
    "WhatsApp (a chat's text)",
    "https://faq.whatsapp.com/1180414079177245",
    _recognises,
    _read,
)
