"""Files come back as they were; what contradicts itself or has another size is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.index.files import (
    FILE,
    IndexModel,
    Manifest,
    Probing,
    SegmentFacts,
    StoredRows,
    StringTable,
    StringWriter,
    keys_of,
    read_manifest,
)

ABOUT = Manifest(
    IndexModel("model", "ab" * 32, None, None),
    4,
    (SegmentFacts("000001", 10, {}, deletions="000002.ab.deleted", deleted=3),),
    next_number=3,
)


def test_it_comes_back(tmp_path):
    ABOUT.write(tmp_path)
    assert read_manifest(tmp_path) == ABOUT
    assert [entry.count for entry in read_manifest(tmp_path).segments] == [7]


@pytest.mark.parametrize("name", ["../000001", "a", "000001/x"])
def test_a_segment_is_in_the_folder(tmp_path, name):
    ABOUT.write(tmp_path)
    path = tmp_path / FILE
    path.write_text(path.read_text().replace('"000001"', json.dumps(name)))
    with pytest.raises(InputError, match=r"changed|damaged"):
        read_manifest(tmp_path)


def test_models_are_the_same_by_their_hashes_wherever_they_are():
    one = IndexModel("model", "ab" * 32, None, "/here")
    assert one.is_same(IndexModel("other name", "ab" * 32, None, "/there"))
    assert not one.is_same(IndexModel("model", "ab" * 32, "cd" * 32, "/here"))


def test_more_hits_need_more_candidates():
    probing = Probing(3, 100, 0.98)
    assert [probing.candidates_for(hits) for hits in (1, 10, 50)] == [100, 100, 500]


def test_keys_of_strings_are_the_same_in_every_run():
    keys = keys_of(["a", "b", "a"])
    assert keys.dtype == np.uint64
    assert keys[0] == keys[2] != keys[1]


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=9)


def written(folder, *parts):
    writer = StringWriter(folder, "some")
    for part in parts:
        writer.add(part)
    writer.close()
    return StringTable(folder, "some", sum(map(len, parts)))


@given(texts, texts)
def test_strings_come_back_one_by_one_and_all(tmp_path_factory, first, second):
    table = written(tmp_path_factory.mktemp("strings"), first, second)
    assert list(table) == first + second
    assert [table[row] for row in range(len(table))] == first + second
    lengths = table.lengths(np.arange(len(table)))
    assert lengths.tolist() == [len(text.encode()) for text in first + second]


def test_a_file_of_another_size_is_named(tmp_path):
    written(tmp_path, ["one", "two"])
    with (tmp_path / "some.bin").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match=r"some\.bin has 7 bytes but should have 6"):
        StringTable(tmp_path, "some", 2)


def test_bytes_that_are_not_utf_8_are_named(tmp_path):
    table = written(tmp_path, ["one", "two"])
    (tmp_path / "some.bin").write_bytes(b"on\xfftwo")
    for read in (lambda: table[0], lambda: list(table)):
        with pytest.raises(InputError, match="not UTF-8"):
            read()


def test_rows_are_read_as_they_are_mapped(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    (tmp_path / "rows").write_bytes(rows.tobytes())
    stored = StoredRows(tmp_path / "rows", np.dtype("<f4"), rows.shape)
    np.testing.assert_array_equal(stored.mapped, rows)
    np.testing.assert_array_equal(stored.read(np.array([3, 0, 3])), rows[[3, 0, 3]])
    blocks = [(first, block.copy()) for first, block in stored.blocks(3)]
    assert [first for first, _ in blocks] == [0, 3]
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), rows)


def test_rows_of_a_file_that_was_cut_are_refused(tmp_path):
    (tmp_path / "rows").write_bytes(np.zeros(6, np.float32).tobytes())
    stored = StoredRows(tmp_path / "rows", np.dtype("<f4"), (2, 3))
    (tmp_path / "rows").write_bytes(np.zeros(4, np.float32).tobytes())
    with pytest.raises(InputError, match="is cut short"):
        stored.read(np.array([1]))
