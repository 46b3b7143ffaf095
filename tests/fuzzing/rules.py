"""The rules of extraction on texts of all kinds, compared with a second version in plain Python."""

import re
import unicodedata
from collections.abc import Callable
from html.entities import html5
from pathlib import Path
from random import Random

import ibis
import polars as pl
import pyarrow as pa

from fuzzing.texts import text
from rejoinder.corpus.options import PROFILES
from rejoinder.corpus.reading.columns import clean_and_letters

_ENTITIES = ("&amp;", "&gt;", "&lt;", "&nbsp;", "&#x200B;", "&#0;", "&#55296;", "&#1114112;", "&;",
             "&notice;", "&amp", "&amp;amp;", "&#x1F600;", "&copy=1;", "&Tab;", "&#9;", "&#32;",
             "&NotEqualTilde;", "&#128;", "&#xFFFFFF;", "&#12345678;")  # fmt: skip
_STARTS = ("https", "/r/", "@", "[deleted]", "[removed]", "http", "r/", "")
_AUTHORS = ("", "bot", "aBOTb", "Robot", "b\u0130t", "bo\u0442", "somebody", "\0bot", "B\u00d6t")
_SPACE = re.compile(
    "[\t-\r\x85\u200b\u0020\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)
_NUMBERED = re.compile("&#(?:([0-9]{1,7})|[xX]([0-9a-fA-F]{1,6}));|&([A-Za-z][A-Za-z0-9]*;)")
_ENGINE_EVERY = 0.005
"""Share of the inputs that the engine reads too: a query costs as much as a hundred inputs."""


def body(random: Random) -> str:
    """A text as a dump may hold it: without halves of surrogate pairs."""
    drawn = text(random) if random.random() < 0.6 else ""
    pieces = [drawn, *random.choices(_ENTITIES, k=random.choice((0, 0, 1, 2, 5)))]
    if random.random() < 0.3:  # about the limits of the rules
        letters = random.choice("aZé日")
        length = random.choice((8, 9, 10, 127, 128, 129, 349, 350, 351, 340))
        share = random.choice((0.69, 0.7, 0.71, 1.0))
        count = round(length * share)
        pieces = [letters * count, "1" * (length - count)]
    random.shuffle(pieces)
    if random.random() < 0.3:
        pieces.insert(0, random.choice(_STARTS))
    joined = "".join(pieces)
    # signs that a later Unicode calls letters are not letters to this Python
    return "".join(sign for sign in joined if unicodedata.category(sign) not in ("Cs", "Cn"))


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return html5.get(name, match.group())
    number = int(decimal) if decimal else int(hexadecimal, 16)
    if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return "\ufffd"
    return _HTML.get(number, "" if _is_no_character(number) else chr(number))


def _is_no_character(number: int) -> bool:
    """What the HTML standard calls a parse error, and Python leaves out."""
    return (
        1 <= number <= 8 or number == 0xB or 0xE <= number <= 0x1F or 0x7F <= number <= 0x9F
        or 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE
    )  # fmt: skip


_HTML = {0x80: "\u20ac", 0x0D: "\r"} | {
    number: bytes([number]).decode("cp1252", "ignore") or chr(number)
    for number in range(0x81, 0xA0)
}
"""What the HTML standard reads numbers of Windows's signs as."""


def clean(said: str) -> str:
    """What cleaning leaves of a text, by the rules of docs/extract.md."""
    return _SPACE.sub(" ", _NUMBERED.sub(_character, said)).strip(" ")


def broken(said: str, author: str, profile: str) -> str | None:
    """The first rule that a comment breaks; none: it is kept."""
    letters = sum(unicodedata.category(sign)[0] == "L" for sign in said)
    found = {
        "deleted": clean(said) in ("", "[deleted]", "[removed]"),
        "too_short": len(said) < 9,
        "too_long": len(said) >= (350 if profile == "paper" else 128),
        "not_alphabetic": letters * 10 <= len(said) * 7,
        "bad_start": said.startswith(("https", "/r/", "@")),
        "bot": "bot" in author.lower(),
    }
    names = [rule.name for rule in PROFILES[profile]]
    return next((name for name in names if found[name]), None)


def checker(folder: Path) -> Callable[[Random], bool]:
    """What checks one comment, or a few in the engine; true: it is kept by the paper's rules."""
    engine = ibis.duckdb.connect(threads=1)

    def checked(random: Random) -> bool:
        texts = [body(random) for _ in range(random.choice((1, 1, 2, 8)))]
        found, letters = clean_and_letters(pa.array(texts, pa.large_string()))
        tidy = found.to_pylist()
        for row, said in enumerate(texts):
            expected = sum(unicodedata.category(sign)[0] == "L" for sign in said)
            assert letters[row] == expected, f"{letters[row]} letters of {expected} in {said!r}"
            result = said if tidy[row] is None else tidy[row]
            assert result == clean(said), f"{said!r} became {result!r}, not {clean(said)!r}"
        if random.random() < _ENGINE_EVERY:
            authors = [random.choice(_AUTHORS) for _ in texts]
            frame = pl.DataFrame(
                {"row": range(len(texts)), "text": texts, "clean": pl.Series(found),
                 "letters": letters, "author": authors}
            )  # fmt: skip
            engine.con.register("drawn", frame.to_arrow())
            engine.con.execute("CREATE OR REPLACE TABLE comments AS SELECT * FROM drawn")
            table = engine.table("comments")
            for profile, rules in PROFILES.items():
                columns = {rule.name: rule.broken_by(table) for rule in rules}
                rows = table.select("row", **columns).order_by("row").to_polars().to_dicts()
                for row, (said, author) in enumerate(zip(texts, authors, strict=True)):
                    first = next((rule.name for rule in rules if rows[row][rule.name]), None)
                    assert first == broken(said, author, profile), (profile, first, said, author)
        return broken(texts[0], "", "paper") is None

    return checked
