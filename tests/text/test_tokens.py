"""The text rules against an independent reference that uses the tables of Python."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.text.normalize import UNICODE, as_series, normalize, tokenize

QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})


def assigned() -> list[str]:
    """Every code point that the tables of Unicode 14 define."""
    return [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")
    ]


def reference_normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(QUOTES).lower()


def kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] in "LM":
        return "word"
    if category == "Nd":
        return "digit"
    # Python calls four control characters white space that Unicode does not
    return "space" if character.isspace() and character not in "\x1c\x1d\x1e\x1f" else "other"


def reference_tokens(text: str) -> list[str]:
    tokens, start = [], 0
    while start < len(text):
        here, end = kind(text[start]), start + 1
        while (
            here == "word"
            and end < len(text)
            and (
                kind(text[end]) == "word"
                or (text[end] == "'" and end + 1 < len(text) and kind(text[end + 1]) == "word")
            )
        ):
            end += 1
        while here == "digit" and end < len(text) and kind(text[end]) == "digit":
            end += 1
        if here != "space":
            tokens.append(text[start:end])
        start = end
    return tokens


@pytest.mark.skipif(
    unicodedata.unidata_version.split(".")[0] != UNICODE.split(".")[0],
    reason=f"the rules are defined for Unicode {UNICODE}; Python has {unicodedata.unidata_version}",
)
def test_every_assigned_character_is_read_as_the_reference_reads_it():
    characters = assigned()
    assert len(characters) > 280_000
    assert normalize(pl.Series(characters)).to_list() == [
        reference_normalize(character) for character in characters
    ]
    texts = [f"a{character}b1{character}2" for character in characters]
    expected = [reference_tokens(reference_normalize(text)) for text in texts]
    assert tokenize(pl.Series(texts)).to_list() == expected


@settings(deadline=None)
@given(st.text(alphabet="aB'’ 12.,ßİΣﬁé\u0301\x00\n中", max_size=30))
def test_tokens_are_those_of_the_reference(text):
    assert tokenize(pl.Series([text])).to_list() == [reference_tokens(reference_normalize(text))]


def test_words_keep_inner_apostrophes_only():
    texts = pl.Series(["Don’t 'quote' rock'n'roll o' '", "3rd x2y", "wow!!"])
    assert tokenize(texts).to_list() == [
        ["don't", "'", "quote", "'", "rock'n'roll", "o", "'", "'"],
        ["3", "rd", "x", "2", "y"],
        ["wow", "!", "!"],
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n", []),
        ("\x00a\x00", ["\x00", "a", "\x00"]),
        ("👩‍👩‍👧", ["👩", "\u200d", "👩", "\u200d", "👧"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("é", ["é"]),
        ("a" * 100_000, ["a" * 100_000]),
        ("\ud83d broken", ["\ufffd", "broken"]),
        ("\ud83d\ude00", ["😀"]),
    ],
)
def test_awkward_strings_have_defined_tokens(text, tokens):
    assert tokenize(as_series([text])).to_list() == [tokens]


def test_many_rows_keep_their_order():
    texts = [f"row {index}" for index in range(70_000)]
    assert tokenize(pl.Series(texts)).to_list() == [["row", str(i)] for i in range(70_000)]


def test_what_is_not_a_string_is_named_by_its_index():
    with pytest.raises(InputError, match="sentence 1 is a NoneType"):
        as_series(["fine", None])
    with pytest.raises(InputError, match="1 nulls"):
        as_series(pl.Series(["fine", None]))
