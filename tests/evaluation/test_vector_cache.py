"""The cache of embeddings by text: what goes in comes out, and damage is one sentence."""

import sqlite3

import numpy as np
import pytest

from rejoinder.errors import InputError, StorageError
from rejoinder.evaluation.vector_cache import VectorCache

TEXTS = ["", "a", "très 😀", "\ud83d", *map(str, range(1_200))]
ROWS = np.random.default_rng(0).standard_normal((len(TEXTS), 3)).astype(np.float32)


def test_what_goes_in_comes_out(tmp_path):
    cache = VectorCache(tmp_path / "new" / "c.sqlite", "one")
    assert cache.read(TEXTS) == {}
    cache.write(TEXTS[1:], ROWS[1:])
    found = VectorCache(tmp_path / "new" / "c.sqlite", "one").read(TEXTS)
    assert set(found) == set(TEXTS[1:])
    np.testing.assert_array_equal([found[text] for text in TEXTS[1:]], ROWS[1:])
    cache.write(TEXTS[1:2], ROWS[:1])
    np.testing.assert_array_equal(cache.read(["a"])["a"], ROWS[0])
    assert VectorCache(tmp_path / "new" / "c.sqlite", "two").read(TEXTS) == {}


def test_the_file_holds_no_texts(tmp_path):
    VectorCache(tmp_path / "c.sqlite", "one").write(["a secret sentence"], ROWS[:1])
    assert b"secret" not in (tmp_path / "c.sqlite").read_bytes()


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "c.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match=r"c\.sqlite.*remove"):
        VectorCache(tmp_path / "c.sqlite", "one")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        VectorCache(tmp_path / "file" / "c.sqlite", "one")


def test_a_changed_vector_is_a_miss_and_so_is_one_without_a_checksum(tmp_path):
    path = tmp_path / "c.sqlite"
    VectorCache(path, "one").write(["a", "b"], ROWS[:2])
    content = path.read_bytes()
    place = content.index(ROWS[0].tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    cache = VectorCache(path, "one")
    assert set(cache.read(["a", "b"])) == {"b"}
    cache.write(["a"], ROWS[:1])
    assert set(cache.read(["a", "b"])) == {"a", "b"}
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE embeddings DROP COLUMN crc32")
    database.close()
    assert VectorCache(path, "one").read(["a", "b"]) == {}
