"""Lines as a stream, JSON values as records, and halves of surrogate pairs."""

import bz2
import gzip
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from rejoinder.errors import InputError
from rejoinder.io.files.hashed import Count, Digest, FileName, Number, Record, Seconds, decoded
from rejoinder.io.formats import text_lines as module
from rejoinder.io.formats.text_lines import (
    Row,
    below_header,
    decoded_lines,
    file_lines,
    replace_surrogates,
    table_rows,
    text_lines,
)

TEXT = "How old are you?\r\n\nيا 😀 très\nlast\x85still last"
LINES = ["How old are you?", "", "يا 😀 très", "last\x85still last"]


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress]
)
def test_files_are_read_whatever_they_are_compressed_by(tmp_path, pack):
    path = tmp_path / "lines"  # the content tells, not the name
    path.write_bytes(pack(TEXT.encode()))
    read = []
    assert list(file_lines(path, read.append)) == LINES
    assert sum(read) == path.stat().st_size


@given(st.text(st.sampled_from("aé😀\r\n \x0b"), max_size=60), st.integers(1, 7))
def test_pieces_of_any_size_give_the_same_lines(text, size):
    content = text.encode()
    if not content:
        return
    pieces = [content[low : low + size] for low in range(0, len(content), size)]
    expected = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    before = module._BLOCK_BYTES
    try:
        for module._BLOCK_BYTES in (1, 5, before):
            assert list(text_lines(pieces, "it")) == expected
    finally:
        module._BLOCK_BYTES = before


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n", [""]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", [""]),
    ],
)
def test_ends_and_marks(content, lines):
    assert list(text_lines([content], "it")) == lines


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it .*empty"),
        (b"a\nb\n\xe8\n", "it.*line 3.*UTF-8.*0xe8"),
        (b"a\nb\x00c\n", "it.*binary.*line 2.*NUL"),
        (b"\x93NUMPY\x01\n", r"it.*NumPy array.*line 1.*UTF-8"),
        (gzip.compress(b"hello", mtime=0), "it.*gzip"),
    ],
)
def test_content_that_is_not_text_is_named(content, said):
    with pytest.raises(InputError, match=said):
        list(text_lines([content] if content else [], "it"))


def test_lines_before_the_fault_come_first_and_are_counted(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 4)
    lines = text_lines([b"a\nb\n", b"c\nd\n", b"e\nf\xff\n"], "it")
    assert [next(lines) for _ in range(4)] == ["a", "b", "c", "d"]
    with pytest.raises(InputError, match=r"it.*line 6.*UTF-8"):
        next(lines)


def test_a_damaged_archive_is_named(tmp_path):
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 50)[:-12])
    with pytest.raises(InputError, match=r"lines\.gz.*cut"):
        list(file_lines(path))
    with pytest.raises(InputError, match=r"none.*No such file"):
        list(file_lines(tmp_path / "none"))


class Inner(Record, frozen=True):
    rows: Count
    file: FileName = "a"


class Outer(Record, frozen=True):
    inner: Inner
    parts: tuple[Inner, ...]
    by_name: Mapping[FileName, Sequence[Number]]
    flag: bool = True
    when: Annotated[int, Meta(ge=1, le=9)] | None = None
    other: Any = None


TREE = {"inner": {"rows": 1}, "parts": [{"rows": 2, "file": "b"}], "by_name": {"x": [1, 2.5]}}


def test_what_is_annotated_comes_back():
    assert decoded(Outer, {**TREE, "when": None, "other": [1]}) == Outer(
        Inner(1), (Inner(2, "b"),), {"x": [1, 2.5]}, other=[1]
    )


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"inner": None}, "object.*null.*inner"),
        ({"inner": {}}, "missing.*rows.*inner"),
        ({"inner": {"rows": 1, "more": 1}}, "unknown.*more.*inner"),
        ({"inner": {"rows": 1.0}}, r"int.*float.*inner\.rows"),
        ({"inner": {"rows": True}}, r"int.*bool.*inner\.rows"),
        ({"inner": {"rows": -1}}, r"int.* >= 0.*inner\.rows"),
        ({"inner": {"rows": 10**30}}, r"inner\.rows"),
        ({"inner": {"rows": 1, "file": "../a"}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": ".."}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": "a\0"}}, r"str.*inner\.file"),
        ({"inner": {"rows": 1, "file": "\ud800"}}, "surrogates not allowed"),
        ({"other": {"\ud800": 1}}, "surrogates not allowed"),
        ({"parts": {}}, "array.*object.*parts"),
        ({"parts": [{"rows": 1}, 2]}, r"object.*int.*parts\[1\]"),
        ({"by_name": [1]}, "object.*array.*by_name"),
        ({"by_name": {"x": [1, "2"]}}, r"float.*str.*by_name.*\[1\]"),
        ({"by_name": {"x": [float("nan")]}}, r"float.*by_name.*\[0\]"),
        ({"by_name": {"a/b": []}}, "str.*by_name"),
        ({"flag": 1}, "bool.*int.*flag"),
        ({"when": 0}, "int.* >= 1.*when"),
        ({"made": 4}, "unknown.*made"),
    ],
)
def test_anything_else_is_named(change, facts):
    with pytest.raises(ValueError, match=facts):
        decoded(Outer, {**TREE, **change})


class Facts(Record, frozen=True):
    sha256: Digest
    seconds: Seconds


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"sha256": "0" * 63}, "str.*sha256"),
        ({"sha256": "0" * 64 + "\n"}, "str.*sha256"),
        ({"sha256": "A" * 64}, "str.*sha256"),
        ({"seconds": float("inf")}, "float.*seconds"),
        ({"seconds": float("nan")}, "float.*seconds"),
        ({"seconds": -0.1}, "float.*seconds"),
    ],
)
def test_digests_and_seconds(change, facts):
    tree = {"sha256": "0" * 64, "seconds": 1}
    assert decoded(Facts, tree).seconds == 1
    with pytest.raises(ValueError, match=facts):
        decoded(Facts, tree | change)


ANY = st.text(st.sampled_from("a\ud800\udbff\udc00\udfff\U0001f600é"))


@given(ANY)
def test_the_result_can_be_encoded(text):
    clean = replace_surrogates(text)
    clean.encode("utf-8")
    assert replace_surrogates(clean) == clean


@given(st.text(st.characters(codec="utf-8")))
def test_text_without_halves_stays(text):
    assert replace_surrogates(text) == text


PATH = Path("a.tsv")


def test_lines_end_with_line_feeds_only():
    content = b"\xef\xbb\xbfa\x0cb\r\n\xc2\x85\xe2\x80\xa8c\n\nd"
    assert decoded_lines(content, PATH) == ["a\x0cb", "\x85\u2028c", "", "d"]
    assert decoded_lines(b"", PATH) == []
    assert decoded_lines(b"\xe9\n", PATH, "latin-1") == ["é"]
    with pytest.raises(InputError, match=r"^a\.tsv line 8.*0xff.*utf-8"):
        decoded_lines(b"a\n\xff\n", PATH, first_line=7)


def test_columns_are_counted():
    assert [row.fields for row in table_rows(b"a\tb\n\n1\t2\t3\n", PATH, (2, 3))] == [
        ["a", "b"],
        ["1", "2", "3"],
    ]
    with pytest.raises(InputError, match=r"line 3.*\b1\b.*2 or 3"):
        list(table_rows(b"a\tb\n\na\n", PATH, (2, 3)))


def test_fields_are_checked():
    row = Row([" b ", "5.5"], 7, PATH)
    assert (row.one_of(0, "ab"), row.score(1, 0, 6)) == ("b", 5.5)
    with pytest.raises(InputError, match=r"a\.tsv line 7.*'b'.*c, d"):
        row.one_of(0, "cd")
    for text in ("5.5", "nan", "1_0", "x"):
        with pytest.raises(InputError, match=rf"a\.tsv line 7.*'{text}'.*0 to 5"):
            Row([text], 7, PATH).score(0, 0, 5)


def test_columns_below_a_header_are_strings_with_quotes_as_they_are():
    content = b'b\ta\tc\r\n"1\t02\tx\r\n\t2"\ty\textra\r\n3\t4\r\n'
    rows = [row.fields for row in below_header(content, PATH, ("a", "b"), exact=False)]
    assert rows == [["02", '"1'], ['2"', ""], ["4", "3"]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a\tb\n1\t2\n3\n", "line 3: found 1 columns .* 2"),
        (b"a\tb\n1\t2\t3\n", "line 2: found 3 columns .* 2"),
        (b"a\tc\n", "line 1: the header 'a c' lacks 'b'"),
        (b"", "line 1: .*'a', 'b'"),
    ],
)
def test_a_line_with_other_columns_and_a_missing_column_are_named(content, said):
    with pytest.raises(InputError, match=said):
        list(below_header(content, PATH, ("a", "b")))
