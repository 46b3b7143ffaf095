"""The cache of embeddings by text: what goes in comes out, and damage is one sentence."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from rejoinder.errors import InputError, StorageError
from rejoinder.evaluation.vector_cache import VectorCache

TEXTS = ["", "a", "très 😀", "\ud83d", *map(str, range(3_000))]
ROWS = np.random.default_rng(0).standard_normal((len(TEXTS), 3)).astype(np.float32)


class Encoder:
    """Encodes `TEXTS` in parts, and records what it was asked for."""

    def __init__(self, rows=ROWS):
        self.asked, self._rows = [], rows

    def __call__(self, texts):
        self.asked += texts
        wanted = self._rows[[TEXTS.index(text) for text in texts]]
        yield from np.array_split(wanted, 2) if len(texts) > 1 else [wanted]


def kept(path, texts, encoder="one"):
    """Returns the texts that the cache has right."""
    encode = Encoder()
    found = VectorCache(path, encoder).completed(texts, encode)
    np.testing.assert_array_equal(found, ROWS[[TEXTS.index(text) for text in texts]])
    return set(texts) - set(encode.asked)


def test_what_goes_in_comes_out(tmp_path):
    path = tmp_path / "new" / "c.sqlite"
    assert kept(path, TEXTS[1_000:]) == set()
    assert kept(path, TEXTS[::-1]) == set(TEXTS[1_000:])
    assert kept(path, TEXTS[1::7]) == set(TEXTS[1::7])
    assert kept(path, TEXTS, "two") == set()


def test_several_write_at_once(tmp_path):
    path = tmp_path / "c.sqlite"
    one, two = (VectorCache(path, "one") for _ in range(2))

    def encode(texts):
        two.completed(TEXTS, Encoder())
        yield ROWS[: len(texts)]

    one.completed(TEXTS[:9], encode)
    assert kept(path, TEXTS) == set(TEXTS)
    second = Encoder()
    one.completed(TEXTS, second)
    assert second.asked == []


def test_what_was_yielded_before_an_error_is_kept(tmp_path):
    def encode(_texts):
        yield ROWS[:5]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        VectorCache(tmp_path / "c.sqlite", "one").completed(TEXTS, encode)
    assert kept(tmp_path / "c.sqlite", TEXTS) == set(TEXTS[:5])


def test_the_file_holds_no_texts(tmp_path):
    VectorCache(tmp_path / "c.sqlite", "one").completed(["a secret sentence"], lambda _: [ROWS[:1]])
    assert b"secret" not in (tmp_path / "c.sqlite").read_bytes()


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "c.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match=r"c\.sqlite.*remove"):
        VectorCache(tmp_path / "c.sqlite", "one")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        VectorCache(tmp_path / "file" / "c.sqlite", "one")


@pytest.mark.parametrize("row", [0, len(TEXTS) - 1])
def test_a_changed_vector_is_a_miss(tmp_path, row):
    path = tmp_path / "c.sqlite"
    kept(path, TEXTS)
    content = path.read_bytes()
    place = content.index(ROWS[row].tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    found = kept(path, TEXTS)
    assert TEXTS[row] not in found
    assert len(found) > 1_000
    assert kept(path, TEXTS) == set(TEXTS)


def changed(path, change):
    """Returns the path of a cache of nine texts, changed by a statement of SQL."""
    kept(path, TEXTS[:9])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(change)
    return path


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE batches SET crc32 = NULL",
        "UPDATE batches SET crc32 = 0",
        "UPDATE batches SET crc32 = 'text'",
        "UPDATE batches SET vectors = x'00000000'",
    ],
)
def test_without_its_checksum_nothing_is_read(tmp_path, change):
    path = changed(tmp_path / "c.sqlite", change)
    assert kept(path, TEXTS[:9]) == set()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE batches SET keys = 7",
        "UPDATE batches SET keys = x'00'",
        "UPDATE batches SET vectors = 'text'",
    ],
)
def test_another_type_is_one_sentence(tmp_path, change):
    path = changed(tmp_path / "c.sqlite", change)
    with pytest.raises(InputError, match=r"c\.sqlite.*remove"):
        kept(path, TEXTS[:9])


def test_another_width_is_one_sentence(tmp_path):
    path = tmp_path / "c.sqlite"
    kept(path, TEXTS[:9])
    with pytest.raises(InputError, match=r"c\.sqlite.*3.*2"):
        VectorCache(path, "one").completed(TEXTS, Encoder(ROWS[:, :2]))


def test_a_file_of_an_earlier_version_is_begun_again(tmp_path):
    path = tmp_path / "c.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        database.execute("INSERT INTO embeddings VALUES (x'00', x'00')")
    database.close()
    assert kept(path, TEXTS[:9]) == set()
    assert kept(path, TEXTS[:9]) == set(TEXTS[:9])
