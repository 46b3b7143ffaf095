"""Cuts greetings, sign-offs, signatures and quotes from messages.

These make messages on different topics similar, and messages on the same topic less similar. The
rules are for English. They cut complete lines and sentences whose words are all names or in a small
set, and keep anything that may matter. If there are many messages in another language, short
sentences are cut that many of them begin or end with.
"""

import re
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from rejoinder.exports.base import KeyNumbers
from rejoinder.text.languages import language_to_stem


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_GREETS = _set_of("hi hello hey hiya howdy heya dear greetings g'day good")
_TIMES = _set_of("morning afternoon evening day")
_GREETED = _TIMES | _set_of(
    "all everyone everybody team folks guys there friends again both sir sirs madam or and to you "
    "the list developers devs support"
)
_HEADS = _set_of(
    "thanks thank thx thanx ty tia cheers regards greetings wishes sincerely faithfully truly "
    "appreciated"
)
"""One of these is in every sign-off that is not one of `_CLOSINGS`,"""
_COURTESY = _HEADS | _set_of(
    "a advance again all an and any anyone anybody answer answers assistance attention be best "
    "bunch consideration everybody everyone feedback for from greatly guys hearing help helping "
    "ideas in input is it kind kindest looking lot many me million much my of on patience reading "
    "reply response so suggestions support that the this time to understanding very warm warmest "
    "will with would you your yours"
)
"""and its other words are these, or names at its end."""
_CLOSINGS = frozenset({
    "best", "all the best", "hope this helps", "hope that helps", "hope it helps",
    "i hope this helps", "looking forward to hearing from you", "have a nice day",
    "have a great day", "have a good day", "have a nice weekend", "have a great weekend",
})  # fmt: skip
_WISHES = frozenset({
    "i hope you are well", "i hope you are doing well", "hope you are well",
    "hope you are doing well", "i hope this email finds you well", "hope this finds you well",
    "i hope this message finds you well", "hope all is well",
})  # fmt: skip
"""Sentences after a greeting."""
_WORD = re.compile(r"[@\w][\w'’.@-]*(?<![.'’-])")
_FIRST = re.compile(r"([^\n]{1,80}?)((?:[,!.:;…]{1,3}(?=\s)|\s[-–—](?=\s)|(?=\n))\s*)")
"""Matches the text up to the first punctuation mark, inclusive, or the first line."""
_LAST = re.compile(r"(?<=[.!?…,\n])\s{1,3}([^\s.!?…,][^\n.!?…,]{0,60})[.!…]{0,3}\s?$")
"""Matches the last sentence, unless it is a question."""
_HABIT, _OF_ALL, _SHORT = 6, 0.001, 4
"""Fewest messages, and smallest share, that must begin or end with the same words; most words."""
_MENTIONS = re.compile(r"(?:@[\w.-]+(?:(?: [A-Z][\w.]*)?[,:;]|\s[-–—](?=\s))?\s+)+")
_BEFORE_LAST = re.compile(
    r"(?:(?<=[.!?…)])\s{1,3}|\s?[,–—-]\s?(?=(?:thanks|thank you|thx|cheers)\b))(?=\S)",
    re.IGNORECASE,
)
"""Matches the text between sentences."""
_REACHED = re.compile(
    r"(?>\S+?@)\S+|\S+ at \w+\.\S+|(?:https?://|www\.)\S+|(?:\w+:? )?[+(]?\d[\d ()/.-]{5,}"
    r"|[:;]-?[)D]"
)
"""Matches a line with contact details."""
_SIGNED_BELOW = re.compile(
    r"--\s*|(?:sent from (?:my|mail for) |get outlook for )[\w ]{1,40}\.?", re.IGNORECASE
)
_QUOTE = re.compile(r"(?:[ ]{0,3}>(?!>>)[^\n]*\n\s*)+")
"""Matches quoted lines above an answer. Readers already cut marked quotes; others may be code."""
_MAY_GREET = re.compile(rf"\W*@|\W*(?:i )?(?:{'|'.join(sorted(_GREETS))}|hope)\b", re.IGNORECASE)
_MAY_SIGN_OFF = (
    "thank", "thanx", "thx", "cheers", "regards", "greetings", "wishes", "sincerely", "faithfully",
    "truly", "appreciated", "best", "helps", "hearing", "day", "weekend",
)  # fmt: skip
_SHORT_THANKS = re.compile(r"\b(?:ty|tia)\b")
"""Every greeting, sign-off of `_HEADS` and sentence of `_CLOSINGS` contains one of these."""
_ROUNDS = 8
"""Most greetings and sign-offs to cut: a text with more consists of them."""
_SIGNATURE = 5
"""Most lines of a signature."""
_WORDS = 12
"""Most words of a greeting or a sign-off."""
_NAMES = 6
"""Most words in a line of a signature."""
_END = 200
"""Characters at the end of a line in which its last sentence must begin."""


def core_of(text: str, author: str = "") -> str:
    r"""Returns a message without greeting, sign-off, signature, and quote above it.

    Returns the full text if fewer than two words would be left. `author`'s name may be a signature.

    >>> core_of("Hello team,\nthe printer on floor 3 is jammed again. Thanks!\nAnna")
    'the printer on floor 3 is jammed again.'
    >>> core_of("Hi @anna!")
    'Hi @anna!'
    """
    if not _may_be_cut(text):
        return text
    core, names = text, frozenset(_lower(_WORD.findall(author)))
    for _ in range(_ROUNDS):
        before, core = core, _without_end(_without_beginning(core), names)
        if core == before:
            return core if len(_WORD.findall(core)) > 1 else text
    return text


class Repeated:
    r"""Cuts lines that many other messages repeat: footers, notices, signatures.

    It only counts in how many messages a line occurs. Each line takes 14 to 28 bytes; one-line
    messages take nothing.

    >>> repeated = Repeated(most=1)
    >>> mails = [f"{said}\n-- \nAnn, floor 3" for said in ("One more.", "Two more.")]
    >>> [repeated.seen(mail).cut(mail) for mail in mails]
    ['One more.\n-- \nAnn, floor 3', 'Two more.']
    """

    def __init__(self, most: int = 5) -> None:
        """Cuts lines that occur in more than `most` messages."""
        self._most = most
        self._numbers = KeyNumbers()
        self._counts = array("I")

    def seen(self, text: str) -> "Repeated":
        """Counts the lines of a message."""
        if "\n" in text:
            for line in {*text.split("\n")}:
                number = self._numbers.add(hash(line.strip()))
                if number == len(self._counts):
                    self._counts.append(0)
                self._counts[number] += 1
        return self

    def cut(self, text: str) -> str:
        """Returns a seen message without such lines, if at least two words are left."""
        if "\n" not in text:
            return text
        lines = [(line, line.strip()) for line in text.split("\n")]
        find, most = self._numbers.find, self._most
        kept = [line for line, bare in lines if not bare or self._counts[find(hash(bare))] <= most]
        left = "\n".join(kept)
        return left if len(_WORD.findall(left)) > 1 else text


def cores_of(texts: Sequence[str], authors: Iterable[str | None]) -> list[str]:
    """Returns the core of messages (`core_of`), without lines that others repeat (`Repeated`)."""
    repeated = Repeated()
    for text in texts:
        repeated.seen(text)
    pairs = zip(texts, authors, strict=True)
    return [core_of(repeated.cut(text), author or "") for text, author in pairs]


def without_habits(texts: Sequence[str]) -> Sequence[str]:
    """Returns texts without the short sentences that many of them begin or end with.

    English texts, which have their own rules, stay as they are.

    >>> asked = [f"Hallo zusammen! Wann ist der Zug {n} da? Danke euch!" for n in range(9)]
    >>> without_habits([*asked, "Danke euch!", "Das ist um drei."])[-3:]
    ['Wann ist der Zug 8 da?', 'Danke euch!', 'Das ist um drei.']
    """
    if language_to_stem(texts) in {"english", ""}:
        return texts
    counts = Counter(part[1:] for text in texts for part in _edges(text))
    least = max(_HABIT, _OF_ALL * len(texts))
    habits = {part for part, count in counts.items() if count >= least}
    return [_without_edges(text, habits) for text in texts]


def _without_edges(text: str, habits: Container[tuple[bool, str]]) -> str:
    for _ in range(_ROUNDS):
        cut = next((rest for rest, *part in _edges(text) if tuple(part) in habits), "")
        if len(_WORD.findall(cut)) < 2:
            break
        text = cut
    return text


def _edges(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yields a text without its first, and without its last, short sentence, with their words."""
    first, last = _FIRST.match(text), _LAST.search(text, max(len(text) - _END, 0))
    for part, rest in (first, first and text[first.end() :]), (last, last and text[: last.start()]):
        words = _lower(_WORD.findall(part[1])) if part else []
        if rest and 0 < len(words) <= _SHORT:
            yield rest, part is first, " ".join(words)


def _may_be_cut(text: str) -> bool:
    """Returns whether any of a text may be cut. Most texts are one line that stays."""
    if "\n" in text or _MAY_GREET.match(text):
        return True
    end = text[-_END:].lower()
    return any(map(end.__contains__, _MAY_SIGN_OFF)) or (
        ("ty" in end or "tia" in end) and _SHORT_THANKS.search(end) is not None
    )


def _without_beginning(text: str) -> str:
    """Cuts a greeting above the text, or above its second line: the first one may be a title."""
    if above := _QUOTE.match(text) or _MENTIONS.match(text):
        return text[above.end() :]
    cut = _ungreeted(text)
    if cut == text:
        first, end, rest = text.partition("\n")
        return first + end + _ungreeted(rest)
    return cut


def _ungreeted(text: str) -> str:
    part = _FIRST.match(text)
    if part is None:
        return text
    words, mark = _WORD.findall(part[1]), part[2]
    if _is_address(words) and mark[0] in ",!" and "\n" in mark:
        return text[part.end() :]
    if not _is_greeting(words):
        return text
    rest = text[part.end() :]
    named = _FIRST.match(rest) if len(words) == 1 and "\n" not in mark else None
    if named and _is_address(_WORD.findall(named[1])) and named[2][0] in ",!":
        return rest[named.end() :]
    return rest


def _is_greeting(words: Sequence[str]) -> bool:
    lower = _lower(words)
    if " ".join(lower) in _WISHES:
        return True
    if not lower or lower[0] not in _GREETS or len(lower) > _WORDS:
        return False
    if lower[0] == "good" and not {*lower[1:2]} & _TIMES:
        return False
    return all(word in _GREETED or _is_name(word) for word in words[1:])


def _is_address(words: Sequence[str]) -> bool:
    return 1 <= len(words) <= 3 and all(map(_is_name, words))


def _without_end(text: str, names: frozenset[str]) -> str:
    lines = text.rstrip().split("\n")
    last = range(len(lines) - 1, max(len(lines) - 2 - _SIGNATURE, -1), -1)
    for number in last:
        if number and _SIGNED_BELOW.fullmatch(lines[number].strip()):
            return "\n".join(lines[:number]).rstrip()
    for number in last:
        line = lines[number]
        words = _lower(_WORD.findall(line))
        if number and (_is_sign_off(line) or (words and names.issuperset(words))):
            return "\n".join(lines[:number]).rstrip()
        begin = max(len(line) - _END, 0)
        for between in [*_BEFORE_LAST.finditer(line, begin)][-1:]:
            if _is_sign_off(line[between.end() :]):
                return "\n".join([*lines[:number], line[: between.start()]])
        if not _is_signature(line):
            break
    return text


def _is_sign_off(sentence: str) -> bool:
    words = _WORD.findall(sentence[:_END])
    if "?" in sentence or len(words) > _WORDS:
        return False
    for _ in range(3):
        if len(words) > 1 and _is_name(words[-1]) and words[-1].lower() not in _COURTESY:
            words.pop()
    lower = _lower(words)
    is_courteous = _COURTESY.issuperset(lower) and not _HEADS.isdisjoint(lower)
    return is_courteous or " ".join(lower) in _CLOSINGS


def _is_signature(line: str) -> bool:
    words = _WORD.findall(line[:_END])
    is_named = len(words) <= _NAMES and "?" not in line and all(map(_is_name, words))
    return is_named or bool(_REACHED.fullmatch(line.strip()))


def _is_name(word: str) -> bool:
    return word[0] == "@" or word[0].isupper()


def _lower(words: Sequence[str]) -> list[str]:
    return [word.lower().replace("’", "'") for word in words]
