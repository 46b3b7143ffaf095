"""What somebody wrote in a mail: without quotes, signatures, and what lists and programs append."""

import re
from collections.abc import Sequence
from itertools import islice

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
"""Matches what archives of lists write above the names of attachments."""
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
"""Matches the first line of what is no longer the mail's text."""
_RULE = re.compile(r"\s*[_=*-]{20,}\s*$")
_FOOTER = re.compile(
    r"mailing list|unsubscribe|(?<!\S)(?>\S*?https?://)\S*?(?:listinfo|lists?[./])", re.IGNORECASE
)
_ARMOUR = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----$|Hash: SHA\d+$")
_UNDERLINE = re.compile(r"\s*_{20,}\s*$")
_LONGEST = 400
"""Characters in a line that says who wrote a quote, at most."""
_LAST = 9
"""Lines in a signature or an advertisement, at most."""


def written_text(text: str) -> str:
    r"""Returns the text of a mail that its author wrote.

    >>> written_text("On 1 May, Ann wrote:\n> Does it work?\n\nYes.\n-- \nBob\nAcme Inc.")
    'Yes.'
    """
    text = _SCRUBBED.split(text.replace("\r\n", "\n").replace("\r", "\n"), maxsplit=1)[0]
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
    """Returns whether few lines from one on are the author's."""
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
