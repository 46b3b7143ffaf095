"""Blocks of whole lines, whatever the pieces."""

import bz2
import lzma
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import decompressed, line_blocks
from rejoinder.io.formats.text_lines import file_lines

pieces = st.lists(st.binary(max_size=9) | st.sampled_from([b"\n", b"ab\nc", b"\n\n"]), max_size=9)


@given(pieces, st.integers(1, 12))
def test_blocks_are_the_content_in_whole_lines(parts, size):
    blocks = list(line_blocks(parts, size, print))
    assert b"".join(blocks) == b"".join(parts)
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert b"" not in blocks


def test_a_line_that_is_too_long_leaves_its_beginning_and_all_other_lines():
    lines = [b"one", b"x" * 9_000, b"two", b"y" * 5_000, b"z" * 30_000, b"", b"three"]
    content, told = b"\n".join(lines), []
    pieces = [content[start : start + 700] for start in range(0, len(content), 700)]
    found = b"".join(line_blocks(pieces, 1_000, told.append, 5_000)).split(b"\n")
    assert [line[:1] for line in found] == [line[:1] for line in lines]
    assert [len(line) for line in found] == [3, 1_000, 3, 5_000, 1_000, 0, 5]
    assert len(told) == 2


def test_bombs_are_read_in_bounded_memory(tmp_path):
    zeros = bytes(1 << 20)
    packers = {"bz2": bz2.BZ2Compressor(), "gz": zlib.compressobj(9, wbits=31),
               "xz": lzma.LZMACompressor(),
               "zst": zstandard.ZstdCompressor().compressobj()}  # fmt: skip
    for name, packer in packers.items():
        path = tmp_path / f"bomb.{name}"
        path.write_bytes(b"".join(packer.compress(zeros) for _ in range(40)) + packer.flush())
        assert max(map(len, decompressed(path))) <= 1 << 28
        with pytest.raises(InputError, match=r"line 1 .*16,777,216"):
            list(file_lines(path))
