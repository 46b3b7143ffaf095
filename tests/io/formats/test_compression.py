"""What is written by a library is recognised and read back; blocks of whole lines."""

import bz2
import gzip
import lzma
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.io.formats.compression import (
    OPENERS,
    Limits,
    compression,
    decompressed,
    expanded,
    line_blocks,
    read_packed,
)
from rejoinder.io.formats.text_lines import file_lines

CONTENT = b"Does anybody know?\n" * 100_000  # more than comes out of a frame at a time
PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
PACKED = {suffix: pack(CONTENT) for suffix, pack in PACK.items()}


@pytest.mark.parametrize("suffix", PACKED)
def test_both_readers_give_the_content(tmp_path, suffix):
    assert PACKED.keys() == OPENERS.keys()
    path = tmp_path / "file"
    path.write_bytes(PACKED[suffix] * 2)  # files may be joined
    assert compression(path) == suffix
    assert b"".join(decompressed(path)) == CONTENT * 2
    assert read_packed(path, suffix) == CONTENT * 2


@pytest.mark.parametrize("suffix", PACKED)
def test_what_is_cut_or_too_large_is_refused(tmp_path, suffix):
    path = tmp_path / "file"
    path.write_bytes(PACKED[suffix])
    with pytest.raises(InputError, match="unpacks to"):
        read_packed(path, suffix, Limits(total=len(CONTENT) - 1))
    path.write_bytes(PACKED[suffix][:-6])
    with pytest.raises(InputError, match="cut short"):
        list(decompressed(path))
    with pytest.raises(InputError, match="damaged or cut"):
        read_packed(path, suffix)


def test_a_plain_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    counts: list[int] = []
    assert compression(path) is None
    assert b"".join(decompressed(path, counts.append)) == CONTENT
    assert sum(counts) == len(CONTENT)


@pytest.mark.parametrize("suffix", PACK)
def test_a_small_file_of_many_zeros_comes_in_small_pieces(suffix):
    packed = PACK[suffix](bytes(1 << 25))
    sizes = [len(piece) for piece in expanded([packed], suffix)]
    assert sum(sizes) == 1 << 25
    assert max(sizes) <= (1 << 20 if suffix != ".zst" else 1 << 25)


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


@pytest.mark.slow
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
