"""Reads chats as plain text: IRC and WhatsApp.

IRC logs have a file per channel or per day, as mIRC, irssi, WeeChat, HexChat, Konversation, ZNC,
The Lounge, supybot and eggdrop write them. If lines only have a time, the day comes from the file's
name or from a line in between; past midnight, it is the next day. Times without a zone are read as
UTC.

A message that begins with a name (`ann: yes`) answers Ann's last message within an hour. In logs of
#ubuntu, 2,101 of 5,150 messages begin so. For three of ten of these, the message right before is by
the person named.

WhatsApp has a file per chat, with dates and times as the phone shows them. The time zone is not
recorded; times are read as UTC.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import chain, groupby, islice, pairwise

from rejoinder.exports.base import ExportFormat, Item, Malformed, Message
from rejoinder.exports.files import Files

# IRC

_ENDINGS = re.compile(
    r"(\.(log|txt|weechatlog|irclog|irc)){1,4}(\.(gz|bz2|xz|zst))?$", re.IGNORECASE
)
_NO_ENDING = re.compile(r"#[^/]*\Z|(?:\A|/)[^./]*\Z")
_STAMP = re.compile(
    r"\s*(?:\[(?P<long>[^\]\d][^\]]{5,40})\] )?[\[(]?"
    r"(?:(?P<date>\d{4}-\d\d-\d\d)(?:[T ]|\] \[)|(?P<month>[A-Z][a-z]{2}) +(?P<day>\d\d?) )?"
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)? ?(?P<zone>[A-Z]{1,5}|[+-]\d\d:?\d\d)?[\])]?(?:[ \t]+|$)"
)
_MODES = "@+%&~! "
_SPEECH = re.compile(rf"<[{_MODES}]{{0,8}}([^<>\t]{{1,64}}?)(?:>|&gt;)(?:[ \t](.*)|$)")
_NEWS = re.compile(r"(?:\*{3,}|={3}|-!-|=!=|--[->]?|<--|->|<-|-\S+-|<\*[^<>\s]*>)(?:\s+(.*)|$)")
"""Marks lines by the server, the client, a bouncer or a service such as NickServ."""
_ACTION = re.compile(r"\*[ \t]+(\S+)(?:[ \t]+(.*)|$)")
_EVENT = re.compile(
    r"(?:\([^)]*\) )?(?:has (?:joined|left|quit|changed|kicked|parted|set)\b|is now known as "
    r"|(?:sets?|gives|removes|changes) (?:mode|topic|ban|the topic|channel|voice)\b|was kicked by )"
    r"|talking (?:on|in) |for [#&]\S+ (?:is|set)"
)
_COLUMNS = re.compile(r"([^\s\t]*)\t(.*)")
_COLOURS = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|[\x00-\x08\x0b-\x1f\x7f]")
_BETWEEN = re.compile(r"(?:---|\*{4}|Session )")
_DAY_BETWEEN = re.compile(r"\b([A-Z][a-z]{2}) +(\d\d?)(?: \d\d:\d\d(?::\d\d)?)?,? (\d{4})\b")
_DAY_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d\d)([-_./]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BACK = 2 * 3600
"""Seconds back that mean a new day; one hour back is the end of daylight saving time."""
_LOOKED_AT = 20
_ADDRESS = re.compile(r"@?([^\s:,<>]{1,32})[:,] ")
_HOUR = 3600.0

_Heard = dict[tuple[str, str], tuple[str, float | None]]
"""Id and time of the last message in a channel by a name in small letters."""


def _texts(files: Files) -> list[str]:
    return [name for name in files.names if _ENDINGS.search(name) or _NO_ENDING.search(name)]


def _is_log(head: bytes) -> bool:
    """Returns whether most lines have a time, followed by the usual content of IRC logs."""
    lines = [_decoded(line) for line in head.splitlines()[:500] if line.strip()]
    bodies = [line[stamp.end() :] for line in lines if (stamp := _STAMP.match(line))]
    ours = [body for body in bodies if _kind(body) is not None]
    said = [body for body in ours if _SPEECH.match(body) or _COLUMNS.match(body)]
    news = [line for line in lines if _NEWS.match(line) or _BETWEEN.match(line)]
    return bool(said) and len(ours) + len(news) > len(lines) / 2


def _read(files: Files) -> Iterator[Item]:
    heard: _Heard = {}
    for name in _texts(files):
        if _is_log(files.head(name)):
            yield from _log(files, name, heard)


def _log(files: Files, name: str, heard: _Heard) -> Iterator[Item]:
    source, clock, time = _channel(files, name), _Clock(name), None
    with files.open(name) as file:
        for number, raw in enumerate(file, 1):
            line = _decoded(raw)
            if not line.strip():
                continue
            stamp = _STAMP.match(line)
            said = _kind(line[stamp.end() if stamp else 0 :])
            try:
                if stamp is None and _BETWEEN.match(line):
                    clock.set_day(line)
                    continue
                time = clock.time(stamp) if stamp else time
            except ValueError as error:
                yield Malformed(name, number, f"no time ({error})")
                continue
            if said is None and stamp is None:
                yield Malformed(name, number, "not a log line: no time and no <nick>")
                continue
            author, text = said or ("", line[stamp.end() if stamp else 0 :])
            id_, text = f"{name}:{number}", text.strip()
            parent = _addressed(text, author, source, time, heard) if author else None
            if author:
                heard[source, author.lower()] = (id_, time)
            yield Message(
                id=id_,
                parent=parent,
                author=author,
                time=time,
                text=text,
                source=source,
                is_system=not author,
            )


def _addressed(
    text: str, author: str, source: str, time: float | None, heard: _Heard
) -> str | None:
    """Returns the id of the last message by the person whose name a text begins with, if any."""
    match = _ADDRESS.match(text)
    if match is None or match[1].lower() == author.lower():
        return None
    id_, before = heard.get((source, match[1].lower()), (None, None))
    if time is not None and before is not None and not 0 <= time - before <= _HOUR:
        return None
    return id_


def _kind(body: str) -> tuple[str, str] | None:
    """Returns author and text of a line without its time; None if it is not a message.

    >>> _kind("<@ann> Hello"), _kind("* ann waves"), _kind("*** ann has joined #help")
    (('ann', 'Hello'), ('ann', 'waves'), ('', 'ann has joined #help'))
    """
    if news := _NEWS.match(body):
        return "", news[1] or ""
    if speech := _SPEECH.match(body):
        return speech[1], speech[2] or ""
    if action := _ACTION.match(body):
        is_event = _EVENT.match(action[2] or "")
        return ("", f"{action[1]} {action[2]}") if is_event else (action[1], action[2] or "")
    if columns := _COLUMNS.match(body):
        return columns[1].lstrip(_MODES), columns[2]
    return None


class _Clock:
    """Tracks the day of a log's lines, as far as known, and computes times on it."""

    def __init__(self, name: str) -> None:
        found = list(_DAY_IN_NAME.finditer(name))
        self._day: date | None = None
        if found:
            year, _, month, day = found[-1].groups()
            with suppress(ValueError):  # 20240231 is some other number
                self._day = date(int(year), int(month), int(day))
        self._before = 0

    def set_day(self, line: str) -> None:
        """Sets the day from a line between messages, if the line names one."""
        found = _DAY_BETWEEN.search(line)
        if found and found[1] in _MONTHS:
            self._day = date(int(found[3]), _MONTHS.index(found[1]) + 1, int(found[2]))
            self._before = 0

    def time(self, stamp: re.Match[str]) -> float | None:
        """Returns seconds since 1970; None if the day is unknown."""
        hour = int(stamp["hour"])
        if stamp["half"]:
            hour = hour % 12 + (12 if stamp["half"] in "Pp" else 0)
        minute, second = int(stamp["minute"]), int(stamp["second"] or 0)
        if hour > 23 or minute > 59 or second > 60:
            raise ValueError(stamp[0].strip())
        seconds = hour * 3600 + minute * 60 + second
        if stamp["long"]:
            self._set_long(stamp["long"])
        elif stamp["date"]:
            self._day = date.fromisoformat(stamp["date"])
        elif stamp["month"]:
            self._set_month(stamp["month"], int(stamp["day"]))
        elif self._day and seconds < self._before - _BACK:
            self._day += timedelta(days=1)
        self._before = seconds
        if self._day is None:
            return None
        zone = stamp["zone"] if (stamp["zone"] or "")[:1] in ("+", "-") else "Z"
        midnight = f"{self._day}T00:00:00{zone}"
        return datetime.fromisoformat(midnight).timestamp() + seconds

    def _set_long(self, words: str) -> None:
        """Sets the day from a date in words before the time, such as `Friday 01 March 2024`."""
        month = re.search(rf"\b({'|'.join(_MONTHS)})", words)
        day, year = re.search(r"\b\d\d?\b", words), re.search(r"\b\d{4}\b", words)
        self._day = None
        if month and day and year:
            self._day = date(int(year[0]), _MONTHS.index(month[0]) + 1, int(day[0]))

    def _set_month(self, name: str, day: int) -> None:
        """Sets the day from a date without a year: the year of the line before, or the next."""
        before, self._day = self._day, None
        if before and name in _MONTHS:
            month = _MONTHS.index(name) + 1
            self._day = date(before.year + (month < before.month), month, day)


def _decoded(line: bytes) -> str:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:  # clients of the nineties, and some of today
        text = line.decode("cp1252", "replace")
    return _COLOURS.sub("", text.rstrip("\r\n"))


def _channel(files: Files, name: str) -> str:
    """Returns the channel in a file's name, or else in the name of its folder or the export."""
    for part in reversed([files.path.name, *name.split("/")]):
        stem = _ENDINGS.sub("", part)
        if "#" in stem:
            stem = stem[stem.index("#") :]
        before, *after = _DAY_IN_NAME.split(stem)
        channel = before.strip("-_. ") or (after[-1].strip("-_. ") if after else "")
        if channel and not channel.isdigit():
            return channel
    return files.path.stem


# https://github.com/mbp/pisg
IRC = ExportFormat(
    "irc",
    "IRC (logs of clients)",
    lambda files: any(_is_log(files.head(name)) for name in _texts(files)[:_LOOKED_AT]),
    _read,
    knows_replies=False,
)


_UNSEEN = "[\u200e\u200f\u202a-\u202e\ufeff]*+"
# WhatsApp

_HEADER = re.compile(
    rf"{_UNSEEN}\[?{_UNSEEN}(\d{{1,4}}){_UNSEEN}([./年년-])\s?(\d{{1,2}}){_UNSEEN}[./月월-]\s?"
    r"(\d{1,4})"
    r"([^\d:\[\]\n]{1,12})(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?([^\d:\[\]\n]{0,8}?)"
    r"(?:\]:?\s?|\s[-\u2013]\s)(.*)"
)
"""A date and a time, with words in some languages: `01/02/20 à 10:11`, `下午3:11`."""
_CLOCK_FIRST = re.compile(
    rf"\A({_UNSEEN}\[?)(\d\d?:\d\d[^\[\]\n]{{0,8}}?),?\s(\d\d?[./-]\d\d?[./-]\d+)(?=\]|\s-\s)"
)
"""The time before the date, as on phones in Vietnam: `21:58, 01/03/2024 - `, and in messages copied
by hand: `[9:58 PM, 3/1/2024] `."""
_MORNING = re.compile(
    r"\ba\.?\s?m\b|上午|午前|凌晨|早上|오전|\bص|π\.?μ|ق\.ظ|\bpg\b|\böö\b|\bsa\b", re.IGNORECASE
)
_AFTERNOON = re.compile(
    r"\bp\.?\s?m\b|下午|午後|中午|晚上|오후|\bم|μ\.?μ|ب\.ظ|\bptg\b|\bös\b|\bch\b", re.IGNORECASE
)
_AUTHOR = re.compile(r'([^:"]+):(?:[ \u200e\u200f]|(?=.?$)).*')
_MARKS = "\u200e\u200f\ufeff \t\n"
_SPACES = f"{_MARKS}\u00a0\u202f"
"""Also the character after the `~` before the name of a person who is not a contact."""
_INVISIBLE = ("\u200e", "\u200f")
"""Begins notices by WhatsApp on iPhones, such as `image omitted`."""
_NOTICE = "end-to-end encrypted"
_EDITED = re.compile(
    r"(?<!\s)\s*+(?:\u200e<[^<>:]*>|<[^<>:=/]{0,40}(?:edited|bearbeitet|edit[óa]|modifi[éc]|bewerkt"
    r"|измен|düzenlendi|تعديل|chỉnh sửa|수정|編輯|编辑|編集)[^<>:=/]{0,40}>)$"
)
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
_CALLS = frozenset({
    "null", "missed voice call", "missed video call", "verpasster sprachanruf",
    "verpasster videoanruf", "llamada perdida", "llamada de voz perdida", "videollamada perdida",
    "appel vocal manqué", "appel vidéo manqué", "chamada de voz perdida",
    "chamada de vídeo perdida", "ligação de voz perdida", "ligação de vídeo perdida",
    "chiamata vocale persa", "videochiamata persa", "gemiste spraakoproep",
    "gemiste video-oproep", "пропущенный аудиозвонок", "пропущенный видеозвонок",
    "cevapsız sesli arama", "cevapsız görüntülü arama", "مكالمة صوتية فائتة", "مكالمة فيديو فائتة",
    "cuộc gọi thoại nhỡ", "cuộc gọi video nhỡ", "부재중 음성 통화", "부재중 영상 통화",
    "未接语音通话", "未接视频通话", "未接語音通話", "未接視訊通話",
})  # fmt: skip
"""Placeholders for missed calls, and for content that an export can't show."""
_WITHOUT_TEXT = _DELETED | _CALLS
_OF_LOGS = ("<", "*", "-")
"""The usual content of IRC logs after a date and a time."""
_Order = tuple[int, int, int]
_FIRST_MESSAGES = 100_000
_ORDERS: dict[str, _Order] = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}
"""Positions of year, month and day among the three numbers of a date."""


def _header(line: str) -> re.Match[str] | None:
    """Matches the header of a message, with the date before the time."""
    return _HEADER.match(_CLOCK_FIRST.sub(r"\1\3, \2", line, count=1))


def _chats(files: Files) -> list[str]:
    heads = ((name, files.head(name).decode("utf-8", "replace")) for name in files.ending(".txt"))
    begun = ((name, _header(head)) for name, head in heads)
    return [name for name, begin in begun if begin and not begin[10].startswith(_OF_LOGS)]


def _chat(files: Files, name: str) -> Iterator[Item]:
    first = islice(_rows(files, name), _FIRST_MESSAGES)
    dates = ((*header[:4], header[8].strip()) for header, _ in first)
    order = _order([date for date, _ in groupby(dates)])
    folder, _, file = name.rpartition("/")
    chat = file.removesuffix(".txt")
    if chat == "_chat":  # iPhones use this name for the file of every chat
        chat = folder or files.path.stem
    for number, (header, lines) in enumerate(_rows(files, name), 1):
        try:
            time = _whatsapp_time(header, order)
        except ValueError as error:
            yield Malformed(name, number, f"no date ({error})")
            continue
        said = _AUTHOR.fullmatch(header[-1])
        line = header[-1][said.end(1) + 1 :].strip(" ") if said else header[-1]
        text = _ATTACHED.sub("", "\n".join([line, *lines]), count=1)
        plain = _EDITED.sub("", text).strip(_MARKS)
        is_gone = _OMITTED.fullmatch(plain) or plain.lower().rstrip(".。") in _WITHOUT_TEXT
        yield Message(
            id=f"{chat}/{number}",
            author=said[1].strip(_MARKS).removeprefix("~").strip(_SPACES) if said else "",
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

    `found` has the numbers of each date, the separator of the first two, and the words after the
    time.

    Numbers above 12 and 31 decide, or else the order in which dates never go back. Otherwise points
    mean day first, and AM and PM in capitals mean month first, as in the United States.
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


def _whatsapp_time(header: tuple[str, ...], order: _Order) -> float:
    one, _, two, three, _, hours, minutes, seconds, *_ = header
    year, month, day = (int((one, two, three)[place]) for place in order)
    hour, half = int(hours), _half(header)
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    century, clock = 2000 if year < 100 else 0, (hour, int(minutes), int(seconds or 0))
    return datetime(century + year, month, day, *clock, tzinfo=UTC).timestamp()


def _half(header: tuple[str, ...]) -> str:
    """Returns "am", "pm", or an empty string for a 24-hour time."""
    words = f"{header[4]} {header[8]}"
    return "am" if _MORNING.search(words) else "pm" if _AFTERNOON.search(words) else ""


# https://faq.whatsapp.com/1180414079177245
WHATSAPP = ExportFormat(
    "whatsapp",
    "WhatsApp (a chat's text)",
    lambda files: bool(_chats(files)),
    lambda files: chain.from_iterable(_chat(files, name) for name in _chats(files)),
)
