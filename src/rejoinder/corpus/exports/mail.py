"""Mails as messages, whatever they are kept in."""

import re
from array import array
from collections.abc import Iterator, Mapping
from datetime import UTC
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message as Mail
from email.utils import parsedate_to_datetime

from rejoinder.corpus.exports.base import Item, Message
from rejoinder.corpus.exports.key_numbers import KeyNumbers
from rejoinder.corpus.exports.mail_text import written_text
from rejoinder.corpus.exports.markup import plain_text
from rejoinder.corpus.manifest import Malformed

HEADER = re.compile(rb"[!-9;-~]+:[ \t\r\n]")
"""Matches a line that begins a mail."""
LARGEST = 1 << 24
"""What comes after so many bytes of a mail is attachments, and left out."""
_QUOTES = (
    "blockquote, .gmail_quote, .gmail_signature, .gmail_attr, .moz-cite-prefix, .moz-signature, "
    ".yahoo_quoted, .OutlookMessageHeader"
)
_ANSWERED = "#divRplyFwdMsg, #appendonsend"
"""Outlook writes the answered mail after these."""
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
"""Encodings whose bytes another encoding would take for ASCII, or for nothing."""
_FAULTS = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""What the standard library raises for mails that are out of order."""


class Mails:
    """Makes messages of the mails of an export."""

    def __init__(self) -> None:
        # about 40 bytes for each mail, and the name of each thread
        self._ids = KeyNumbers()
        self._threads: list[str] = []
        self._texts = array("q")

    def items(
        self, content: bytes, source: str, file: str, number: int, time: float | None
    ) -> Iterator[Item]:
        """Yields a mail as a message.

        A copy has the id of its original. Other mails with the id of an earlier one get another.

        Args:
            content: the mail.
            source: where it is kept, in case it names no list.
            file: name of its file.
            number: its place in the file, from 1.
            time: when it arrived, in case it has no date.
        """
        try:
            mail = message_from_bytes(content[:LARGEST])
            headers = _headers(mail)
            if not {"from", "date", "message-id"} & headers.keys():
                raise ValueError("it has none of From, Date and Message-ID")
            yield self._message(mail, headers, source, f"{file}/{number}", time)
        except _FAULTS as error:
            yield Malformed(file, number, f"no mail ({error})")

    def _message(
        self, mail: Mail, headers: Mapping[str, str], source: str, place: str, time: float | None
    ) -> Message:
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
        name, address = _author(headers.get("from", ""))
        user = re.split("@| at ", address)[0]
        return Message(
            id=id_,
            text=text
            or ("" if parent else _SUBJECT_MARKS.sub("", headers.get("subject", "")).strip()),
            parent=parent,
            thread=thread,
            author=name or address,
            time=_time(headers.get("date", ""), time),
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
    """Returns text whose encoding may be named wrongly: UTF-8 if it can be, then as named."""
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


def _time(date: str, otherwise: float | None) -> float | None:
    try:
        time = parsedate_to_datetime(date)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return otherwise


def _body(part: Mail) -> str:
    """Returns the text of a part: that of its parts, or of the best of alternatives."""
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
