"""The text rules against an independent reference that uses the tables of Python."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.text.columns import as_series, normalize, tokenize
from rejoinder.text.normalize import (
    DIGIT,
    LETTER,
    OTHER,
    SPACE,
    UNICODE,
    as_strings,
    classes,
    normalize_text,
    saying,
    tokens_of,
    words_of,
)

QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})


def by_columns(texts: list[str]) -> list[list[str]]:
    return tokenize(as_series(texts)).to_list()


def by_sentence(texts: list[str]) -> list[list[str]]:
    return [tokens_of(text) for text in as_strings(texts)]


both = pytest.mark.parametrize("tokens_by", [by_columns, by_sentence])


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
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_every_assigned_character_is_read_as_the_reference_reads_it(step):
    characters = assigned()[::step]
    assert len(characters) > 280_000 // step
    expected = [reference_normalize(character) for character in characters]
    assert normalize(pl.Series(characters)).to_list() == expected
    assert [normalize_text(character) for character in characters] == expected
    texts = [f"a{character}b1{character}2" for character in characters]
    expected = [reference_tokens(reference_normalize(text)) for text in texts]
    assert by_columns(texts) == expected
    assert by_sentence(texts) == expected


@pytest.mark.skipif(not unicodedata.unidata_version.startswith(UNICODE), reason="another Unicode")
def test_the_classes_of_code_points_are_those_of_the_tables():
    names = {"word": LETTER, "digit": DIGIT, "space": SPACE, "other": OTHER}
    assert classes() == bytes(names[kind(chr(code))] for code in range(0x110000))


@both
@given(text=st.text(alphabet="aB'’ 12.,ßİΣﬁé\u0301\x00\n中", max_size=30))
def test_tokens_are_those_of_the_reference(tokens_by, text):
    assert tokens_by([text]) == [reference_tokens(reference_normalize(text))]


@given(text=st.text(alphabet="ab' 1+-.,_\n\x1cé中", max_size=12), data=st.data())
def test_a_text_says_the_words_that_it_has_in_a_row(text, data):
    words = words_of(text)
    begin, end = sorted(data.draw(st.integers(0, len(words))) for _ in range(2))
    if begin < end:
        assert saying(words[begin:end])(text)
    others = words_of(data.draw(st.text(alphabet="ab'1+", min_size=1, max_size=4)))
    has = any(words[at : at + len(others)] == others for at in range(len(words)))
    assert not others or saying(others)(text) == has


@both
def test_words_keep_inner_apostrophes_only(tokens_by):
    texts = ["Don’t 'quote' rock'n'roll o' '", "3rd x2y", "wow!!"]
    assert tokens_by(texts) == [
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
@both
def test_awkward_strings_have_defined_tokens(tokens_by, text, tokens):
    assert tokens_by([text]) == [tokens]


def test_many_rows_keep_their_order():
    texts = [f"row {index}" for index in range(70_000)]
    assert tokenize(pl.Series(texts)).to_list() == [["row", str(i)] for i in range(70_000)]


def test_what_is_not_a_string_is_named_by_its_index():
    with pytest.raises(InputError, match="sentence 1 is a NoneType"):
        as_series(["fine", None])
