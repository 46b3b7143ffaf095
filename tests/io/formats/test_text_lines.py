"""Lines as a stream: ends, marks, compression, and the line at fault."""

import bz2
import gzip
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.io.formats import text_lines as module
from rejoinder.io.formats.text_lines import file_lines, text_lines

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
