"""One table of formats: what is written by a library is recognised and read back."""

import bz2
import gzip
import lzma

import pytest
import zstandard

from rejoinder.errors import InputError
from rejoinder.io.formats.bounded import OPENERS, Limits, read_packed
from rejoinder.io.formats.compression import Frames, compression, decompressed

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
    sizes = [len(piece) for piece in Frames(suffix).decompress(packed)]
    assert sum(sizes) == 1 << 25
    assert max(sizes) <= (1 << 20 if suffix != ".zst" else 1 << 25)
