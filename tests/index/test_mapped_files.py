"""Strings and rows in files: they come back as they were, and a file of another size is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.index.mapped_files import StoredRows, StringTable, StringWriter

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
    with pytest.raises(InputError, match=r"some\.bin has 7 bytes and should have 6"):
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
    with pytest.raises(InputError, match="has lost its end"):
        stored.read(np.array([1]))
