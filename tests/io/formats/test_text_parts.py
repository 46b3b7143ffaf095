"""Parts of text files: together they hold each line of the file once, in order."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.io.formats.text_lines import file_lines
from rejoinder.io.formats.texts import part_lines, text_parts


@given(
    lines=st.lists(st.text("aé😀 \r", max_size=9), min_size=1, max_size=12),
    size=st.integers(1, 40),
    ends=st.booleans(),
)
def test_parts_hold_each_line_once(tmp_path_factory, lines, size, ends):
    path = tmp_path_factory.mktemp("parts") / "lines.txt"
    path.write_bytes("\n".join(lines).encode() + b"\n" * ends)
    if not path.stat().st_size:
        return
    parts = text_parts([path], size)
    assert [line for part in parts for line in part_lines(part)] == list(file_lines(path))


def test_compressed_files_are_parts_of_their_own(tmp_path):
    paths = [tmp_path / "a.gz", tmp_path / "b.txt"]
    paths[0].write_bytes(gzip.compress(b"one\ntwo\n" * 100))
    paths[1].write_bytes(b"three\nfour\n")
    parts = text_parts(paths, 6)
    assert [(part.path.name, part.is_whole) for part in parts] == [
        ("a.gz", True),
        ("b.txt", False),
        ("b.txt", False),
    ]
    assert len(list(part_lines(parts[0]))) == 200
    assert [list(part_lines(part)) for part in parts[1:]] == [["three"], ["four"]]


def test_faults_are_named(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"lines\.txt is empty"):
        text_parts([path], 10)
    path.write_bytes(b"good\n" * 10 + b"\xff\n")
    *_, last = text_parts([path], 25)
    with pytest.raises(InputError, match=r"lines\.txt .*byte 50.*line 1 .*UTF-8"):
        list(part_lines(last))
