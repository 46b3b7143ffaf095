"""Reads mails, without quotes, signatures, and text that programs append.

An mbox is a file of mails, as from Thunderbird, Google and list archives. A Maildir has a file per
mail, as on mail servers, and so do `.eml` files and MH folders. A single mail is recognised by its
headers, whatever its file name.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message as Mail
from email.utils import parsedate_to_datetime
from itertools import chain, islice, pairwise
from typing import IO

from rejoinder.exports import rows
from rejoinder.exports.base import ExportFormat, Item, KeyNumbers, Message, by_time
from rejoinder.exports.files import Files
from rejoinder.exports.markup import plain_text

HEADER = re.compile(rb"[!-9;-~]+:[ \t\r\n]")
"""Matches a line that begins a mail."""
LARGEST = 1 << 24
"""Most bytes of a mail to read; the rest is attachments."""
_QUOTES = (
    "blockquote, .gmail_quote, .gmail_signature, .gmail_attr, .moz-cite-prefix, .moz-signature, "
    ".yahoo_quoted, .OutlookMessageHeader"
)
_ANSWERED = "#divRplyFwdMsg, #appendonsend"
"""Outlook puts the answered mail after these."""
_ID = re.compile(r"<\s*([^<>\s]+)\s*>")
_ENCODED = re.compile(r"(?:=\?[^?\s]+\?[bq]\?[^?\s]*\?=(?:\s+(?==\?))?){1,99}", re.IGNORECASE)
_ADDRESS = re.compile(r'"?(.*?)"?(?<!\s)\s*<([^<>]*)>')
_NAME_AFTER = re.compile(r"(?=.*\)\Z)(.*?\S)\s?\((.+)\)")
_BY_LIST = re.compile(r"(?<!\s)\s+via\s+\S.*")
_SUBJECT_MARKS = re.compile(
    r"(?:(?<!\s)\s*+(?:(?:re|aw|sv|antw?|rv|fwd?)(?:\[\d+\])?:|\[[^\[\]]*\]))++", re.IGNORECASE
)
_PROGRAM = re.compile(r"mailer-daemon|^postmaster|-owner$|-request$|-bounces$|^mailman$", re.I)
_BOT = re.compile(r"(?:no|do.?not).?reply", re.IGNORECASE)
_OTHER_THAN_ASCII = ("iso-2022", "hz", "utf-7", "utf7", "utf-16", "utf-32")
"""Encodings whose bytes would pass as ASCII, or as nothing, in another encoding."""


class Mails:
    """Converts the mails of an export to messages."""

    def __init__(self) -> None:
        # about 40 bytes for each mail, and the name of each thread
        self._ids = KeyNumbers()
        self._threads: list[str] = []
        self._texts = array("q")

    def message(self, content: bytes, source: str, place: str, time: float | None) -> Message:
        """Converts a mail to a message.

        A copy keeps the id of its original. A different mail with a repeated id gets a new id.

        Args:
            content: the mail.
            source: channel to use if the mail names no list.
            place: unique string to use if the mail has no id.
            time: time of arrival, to use if the mail has no date.
        """
        mail = message_from_bytes(content[:LARGEST])
        headers = _headers(mail)
        if not {"from", "date", "message-id"} & headers.keys():
            raise ValueError("it has no From, Date or Message-ID")
        text = written_text(_body(mail))
        own = _ID.search(headers.get("message-id", ""))
        id_ = own[1] if own else place
        earlier = _ID.findall(headers.get("references", ""))
        answered = _ID.findall(headers.get("in-reply-to", "")) or earlier[-1:]
        parent = next((one for one in answered if one != id_), None)
        first = next((one for one in [*earlier, parent] if one and one != id_), id_)
        above = -1 if parent is None else self._ids.find(hash(parent))
        above = self._ids.find(hash(first)) if above < 0 else above
        thread = first if above < 0 else self._threads[above]
        number = self._ids.add(hash(id_))
        if number == len(self._threads):
            self._threads.append(thread)
            self._texts.append(hash(text))
        elif self._texts[number] != hash(text):
            id_ = f"{id_}/{place}"
        subject = _SUBJECT_MARKS.sub("", headers.get("subject", "")).strip()
        name, address = _author(headers.get("from", ""))
        user = re.split("@| at ", address)[0]
        return Message(
            id=id_,
            text=text or ("" if parent else subject),
            title=subject if text else "",
            parent=parent,
            thread=thread,
            author=name or address,
            time=date_seconds(headers.get("date", ""), time),
            source=_list_of(headers.get("list-id", "")) or source,
            link=next(iter(_ID.findall(headers.get("archived-at", ""))), None),
            is_bot=_is_bot(headers) or bool(_BOT.search(user)),
            is_system=bool(_PROGRAM.search(user)) or mail.get_content_type() == "multipart/report",
        )


def _headers(mail: Mail) -> dict[str, str]:
    """Returns the first header of each name, in lower case, as text."""
    headers: dict[str, str] = {}
    for name, value in mail.raw_items():
        headers.setdefault(name.lower(), _unfolded(str(value)))
    return headers


def _unfolded(value: str) -> str:
    text = " ".join(_decoded(value.encode("ascii", "surrogateescape"), "").split())
    return " ".join(_ENCODED.sub(_decoded_words, text).split()) if "=?" in text else text


def _decoded_words(words: re.Match[str]) -> str:
    try:
        pieces = decode_header(words[0])
    except (HeaderParseError, ValueError):
        return words[0]
    return "".join(
        one if isinstance(one, str) else _decoded(one, charset or "") for one, charset in pieces
    )


def _decoded(content: bytes, charset: str) -> str:
    """Decodes text whose stated encoding may be wrong: as UTF-8 if valid, else as stated."""
    charset = charset.lower()
    choices = ["utf-8", charset, "cp1252"]
    if charset.startswith(_OTHER_THAN_ASCII):
        choices.insert(0, charset)
    for choice in choices:
        try:
            text = content.decode(choice)
        except (LookupError, ValueError):
            continue
        return text.encode("utf-8", "replace").decode()
    return content.decode("cp1252", "replace")


def _author(value: str) -> tuple[str, str]:
    """Returns name and address.

    >>> _author('"Ann B." <ann@example.org>'), _author("ann at example.org (Ann B.)")
    (('Ann B.', 'ann@example.org'), ('Ann B.', 'ann at example.org'))
    """
    if match := _ADDRESS.match(value):
        return _BY_LIST.sub("", match[1].replace("\\", "")), match[2]
    if match := _NAME_AFTER.fullmatch(value):
        return _BY_LIST.sub("", match[2]), match[1]
    return "", value


def _list_of(value: str) -> str:
    """Returns the name of a list.

    >>> _list_of("Developers <dev.lists.example.org>"), _list_of("dev.example.org")
    ('dev', 'dev')
    """
    address = next(iter(_ID.findall(value)), value.strip())
    return re.split("[.@]", address)[0] if " " not in address else ""


def _is_bot(headers: Mapping[str, str]) -> bool:
    if headers.get("auto-submitted", "no").lower().partition(";")[0].strip() not in ("no", ""):
        return True
    answers = ("x-autoreply", "x-autorespond", "x-auto-response")
    return headers.get("precedence", "").lower() == "auto_reply" or any(
        one in headers for one in answers
    )


def date_seconds(date: str, otherwise: float | None = None) -> float | None:
    """Parses the date of a mail, in UTC if it has no zone; returns `otherwise` if invalid."""
    try:
        time = parsedate_to_datetime(date)
        return time.replace(tzinfo=time.tzinfo or UTC).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return otherwise


def _body(part: Mail) -> str:
    """Returns the text of a part: of all its parts, or of the best alternative."""
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or kind.startswith("message/"):
        return ""
    payload = part.get_payload()
    if isinstance(payload, list):
        texts = [_body(one) for one in payload if isinstance(one, Mail)]
        if kind == "multipart/alternative":
            return next((text for text in texts if text.strip()), "")
        return "\n".join(text for text in texts if text)
    if part.get_content_maintype() not in ("text", "multipart") or part.get_filename():
        return ""
    content = part.get_payload(decode=True)
    text = _decoded(
        content if isinstance(content, bytes) else b"", part.get_content_charset() or ""
    )
    if kind == "text/html":
        return plain_text(text, without=_QUOTES, after=_ANSWERED)
    return text if kind in ("text/plain", "multipart/mixed") else ""


_QUOTED = re.compile(r"[ \t]{0,3}(?:'?>|[A-Z]{1,2}> |\|[ \t])")
_VERBS = (
    r"(?:\b(?:wrote|writes|said|schrieb|geschrieben|écrit|escribió|escribio|scritto|scrive|"
    r"escreveu|schreef|geschreven|skrev|kirjoitti|napisał|napisała|napsal|napsala|napísal|írta|"
    r"scris|написал|написала|пишет|писал|написав|yazdı|έγραψε|viết|menulis|escrit|كتب|כתב)\b"
    r"|写道|書きました)"
)
_WROTE = re.compile(rf"{_VERBS}(?=\W*+$)\W*?[:：]", re.IGNORECASE)
"""Matches a line that says who wrote the quote after it. It ends with the verb,"""
_WROTE_THEN = re.compile(rf"{_VERBS}.{{0,80}}[:：]\W*+$", re.IGNORECASE)
"""or with a name, where it begins with a date."""
_BY_ADDRESS = re.compile(
    r"^(?>.*?(?:\S@\S|\w at \w+\.\w)).*[:：]\s*$|^(?:quoting|citando|zitat von)\b.*:\s*$",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\s*(?:(?:on|at|in a message dated|am|le|el|il|em|op|den|dnia|w dniu|dne|pe|в)\b|"
    r"\d{1,4}(?:[-./年] ?\d| \w+ \d))",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d[-./]\d")
_FORWARDED = re.compile(
    r"\s*(?:-{2,}|_{2,}|\*{2,})\s*"
    r"(?:(?:begin )?(?:original|forwarded|weitergeleitete|ursprüngliche|urspr\S+gliche|message|"
    r"mensaje|messaggio|mensagem|oorspronkelijk|doorgestuurd|oprindelig|ursprungligt|opprinnelig|"
    r"wiadomość|исходное|пересылаемое|özgün|orijinal|iletilen|původní|eredeti)\b)"
    r"|\s*begin forwarded message:\s*$",
    re.IGNORECASE,
)
_SENDER = re.compile(
    r"[ \t]*\*?(?:From|Von|De|Da|Van|Från|Fra|Od|Від|От|Kimden|Gönderen|Lähettäjä|发件人|差出人)"
    r"\*?[ \t]*[:：]\*?[ \t]*\S"
)
_SENT = re.compile(
    r"[ \t]*\*?(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado|Enviada|Fecha|Data|Inviato|Verzonden|"
    r"Skickat|Sendt|Dato|Wysłano|Wysłane|Отправлено|Дата|Gönderildi|Gönderilen|Tarih|Lähetetty|"
    r"To|An|À|Para|A|Aan|Till|Til|Do|Кому|Kime|发送时间|送信日時)\*?[ \t]*[:：]"
)
_SCRUBBED = re.compile(r"^-{3,} next part -{3,}$", re.MULTILINE)
"""Matches the text that list archives put above the names of attachments."""
_NOTICE = re.compile(
    r"^An? [\w -]{1,60} was scrubbed\.\.\.[ \t]*"
    r"(?:\n(?:Name|Type|Size|Desc|Url|From|Subject|Date) ?:.*)*",
    re.MULTILINE | re.IGNORECASE,
)
"""Matches the text that Mailman puts instead of a part of a mail, often the only part."""
_ENDS = re.compile(
    r"-- $|-----BEGIN PGP SIGNATURE-----$|"
    r"\s*(?:sent from (?:my|mail for|outlook)|sent via |get outlook for |"
    r"von meinem .{2,30} gesendet|gesendet (?:mit|von) |envoyé (?:de mon|depuis) |"
    r"enviado desde mi |enviado do meu |inviato da(?:l mio)? |verzonden vanaf mijn |"
    r"skickat från min |отправлено с )[\w .®™]{0,40}$|"
    r"--~--~-{5,}|This SF\.net email is sponsored|"
    r"You received this message because you are subscribed",
    re.IGNORECASE,
)
"""Matches the first line after the end of the mail's text."""
_RULE = re.compile(r"\s*[_=*-]{20,}\s*$")
_FOOTER = re.compile(
    r"mailing list|unsubscribe|(?<!\S)(?>\S*?https?://)\S*?(?:listinfo|lists?[./])", re.IGNORECASE
)
_ARMOUR = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----$|Hash: SHA\d+$")
_UNDERLINE = re.compile(r"\s*_{20,}\s*$")
_LONGEST = 400
"""Most characters in a line that says who wrote a quote."""
_LAST = 9
"""Most lines in a signature or an advertisement."""


def written_text(text: str) -> str:
    r"""Returns the text of a mail that its author wrote.

    >>> written_text("On 1 May, Ann wrote:\n> Does it work?\n\nYes.\n-- \nBob\nAcme Inc.")
    'Yes.'
    """
    text = _SCRUBBED.split(text.replace("\r\n", "\n").replace("\r", "\n"), maxsplit=1)[0]
    text = _NOTICE.sub("", text)
    lines = text.split("\n")
    lines = lines[: _end(lines)]
    kept: list[str] = []
    for number, line in enumerate(lines):
        if _QUOTED.match(line):
            if not (number and _QUOTED.match(lines[number - 1])):
                _drop_attribution(kept)
        elif not _ARMOUR.match(line) and not (_has_date(line) and _names_author([line])):
            kept.append(line.rstrip())
    return "\n".join(line for line in kept if line.strip()).strip()


def _end(lines: Sequence[str]) -> int:
    """Returns the number of lines before a signature, a footer, or the answered mail."""
    last = max((number for number, line in enumerate(lines) if _QUOTED.match(line)), default=-1)
    for number, line in enumerate(lines):
        after = lines[number + 1 : number + 5]
        if _ENDS.match(line) or _FORWARDED.match(line):
            return number
        if (line.rstrip() == "--" or _UNDERLINE.match(line)) and _is_short(lines, number):
            return number
        if _RULE.match(line) and any(map(_FOOTER.search, after)):
            return number
        if _SENDER.match(line) and any(map(_SENT.match, after[:2])):
            return number - (number > 0 and bool(_RULE.match(lines[number - 1])))
        if _answers_all(lines, number, last):
            return number
    return len(lines)


def _is_short(lines: Sequence[str], number: int) -> bool:
    """Returns whether the author wrote only few of the lines from `number` on."""
    rest = map(lines.__getitem__, range(number, len(lines)))
    own = (line for line in rest if line.strip() and not _QUOTED.match(line))
    return len(list(islice(own, _LAST + 1))) <= _LAST


def _answers_all(lines: Sequence[str], number: int, last: int) -> bool:
    """Whether a line says who wrote the rest, where no line after it is marked; one is the last."""
    if not _has_date(lines[number]):
        return False
    for length in (1, 2, 3):
        line = " ".join(lines[number : number + length])
        if len(line) <= _LONGEST and _WROTE_THEN.search(line):
            return last < number + length
    return False


def _drop_attribution(kept: list[str]) -> None:
    """Removes the lines before a quote that say who wrote it."""
    while kept and not kept[-1].strip():
        kept.pop()
    for start in range(max(0, len(kept) - 3), len(kept)):
        if _names_author(kept[start:]):
            del kept[start:]
            return


def _names_author(lines: Sequence[str]) -> bool:
    if not all(map(str.strip, lines)):
        return False
    line = " ".join(lines)
    if len(line) > _LONGEST:
        return False
    if _WROTE_THEN.search(line) and (_has_date(line) or (len(lines) == 1 and _DAY.search(line))):
        return True
    return len(lines) == 1 and bool(_WROTE.search(line) or _BY_ADDRESS.search(line))


def _has_date(line: str) -> bool:
    return bool(_BEGINS.match(line)) and any(map(str.isdigit, line))


_BEGINNING = re.compile(rb"(?:\A|\n)From [^\n]*\n>?[!-9;-~]+:[ \t\r\n]")
_DATE = re.compile(rb"\w{3},? {1,3}(?:\w{3} {1,3}\d\d?|\d\d? {1,3}\w{3}) .{0,40}\d\d:\d\d.*")
_ESCAPED = re.compile(rb">+From ")
_MONTH = re.compile(r"\d{4}-?(?:[A-Z][a-z]+|\d\d|q[1-4])?")
"""Matches the names of files that archives write for a month, a quarter or a year."""
_LINE = 1 << 16


def _items(files: Files) -> Iterator[Item]:
    mails = Mails()
    for name in files.names:
        if not _BEGINNING.search(files.head(name)):
            continue
        with files.open(name) as file:
            for number, (time, content) in enumerate(_contents(file), 1):
                source, place = _source(files, name), f"{name}/{number}"
                yield rows.item_of(name, number, mails.message, content, source, place, time)


def _source(files: Files, name: str) -> str:
    folder, _, file = name.rpartition("/")
    stem = file.partition(".")[0] or file
    if not _MONTH.fullmatch(stem) and stem != "mbox":
        return stem
    return (folder.rpartition("/")[2] or files.title).removesuffix(".mbox")


def _contents(file: IO[bytes]) -> Iterator[tuple[float | None, bytes]]:
    """Yields each mail's time of arrival and its content, cut at the size limit."""
    beginning = b""
    lines: list[bytes] = []
    size, before = 0, b"\n"
    for line, following in pairwise(chain(iter(lambda: file.readline(_LINE), b""), [b""])):
        if _is_beginning(before, line, following):
            if beginning:
                yield _time(beginning), b"".join(lines)
            beginning, lines, size = line, [], 0
        elif beginning and size < LARGEST:
            size += len(line)
            lines.append(line[1:] if _ESCAPED.match(line) else line)
        before = line
    if beginning:
        yield _time(beginning), b"".join(lines)


def _is_beginning(before: bytes, line: bytes, following: bytes) -> bool:
    """Returns whether a line begins a mail: lines in texts can begin with From, too."""
    if not line.startswith(b"From ") or not HEADER.match(following.removeprefix(b">")):
        return False
    return not before.strip() or (before.endswith(b"\n") and bool(_DATE.search(line)))


def _time(line: bytes) -> float | None:
    found = _DATE.search(line)
    return date_seconds(found[0].decode("ascii", "replace")) if found else None


# https://www.rfc-editor.org/rfc/rfc4155
MBOX = ExportFormat(
    "mbox",
    "mbox (mail)",
    lambda files: any(
        _BEGINNING.match(files.head(one).lstrip()) for one in files.names[: rows.LOOKED_AT]
    ),
    lambda files: by_time(_items(files)),
)


_MAIL = re.compile(
    r"(?:(.*)/)?(?:(?<=cur/)[^/]+|(?<=new/)[^/]+|\d{9,10}\.[^/]+|[^/]+\.eml|\d+\.?)", re.IGNORECASE
)
"""Matches the name of a mail, and its folder."""
_ARRIVED = re.compile(r"(?:.*/)?(\d{9,10})\.[^/]*")
_HEADERS = re.compile(rb"(?:[!-9;-~]+:.*\n(?:[ \t].*\n)*)+\r?\n")
"""Matches the headers of a mail, and the blank line after them."""
_SENT_BY = re.compile(rb"^(?:From|Date|Message-ID|Received|Return-Path):", re.I | re.MULTILINE)


def _is_maildir(files: Files) -> bool:
    mails = islice(filter(_MAIL.fullmatch, files.names), rows.LOOKED_AT)
    heads = (files.head(name).lstrip() for name in mails)
    return any(HEADER.match(one) and _SENT_BY.search(one) for one in heads) or _is_alone(files)


def _is_alone(files: Files) -> bool:
    """Returns whether the only file begins with the headers that every mail has."""
    headers = _HEADERS.match(files.first.lstrip())
    return headers is not None and {b"from:", b"date:"} <= {
        name.lower() for name in _SENT_BY.findall(headers[0])
    }


def _maildir_items(files: Files) -> Iterator[Item]:
    mails, is_alone = Mails(), _is_alone(files)
    for name in files.names:
        found = _MAIL.fullmatch(name)
        if found is None and not is_alone:
            continue
        with files.open(name) as file:
            content = file.read(LARGEST)
        arrived = _ARRIVED.fullmatch(name)
        time = float(arrived[1]) if arrived else None
        folder = (found and found[1]) or ""
        source = re.sub(r"(?:^|/)(?:cur|new)$", "", folder).lstrip(".") or "INBOX"
        if content.strip():
            yield rows.item_of(name, 1, mails.message, content, source, f"{name}/1", time)


# https://cr.yp.to/proto/maildir.html
MAILDIR = ExportFormat(
    "maildir",
    "Maildir (mail)",
    _is_maildir,
    lambda files: by_time(_maildir_items(files)),
)
