"""Files of embeddings, by format: they hold what was appended, in whatever pieces."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import InputError
from rejoinder.io.formats import embedding_files
from rejoinder.io.formats.embedding_files import FORMATS, format_of

TEXTS = ["plain", "très 😀", "", 'a "quoted"\nline\ttab', "\\"] * 7
ROWS = np.random.default_rng(0).standard_normal((len(TEXTS), 3)).astype(np.float32)
ROWS[3] = [0, np.finfo(np.float32).max, np.finfo(np.float32).tiny]


def written(folder, suffix, pieces, rows=ROWS):
    form = FORMATS[suffix]
    folder.mkdir()
    files = [(folder / name).open("wb") for name in form.parts]
    form.begin(files, rows.shape[1])
    for low in range(0, len(rows), pieces):
        form.append(files, TEXTS[low : low + pieces], rows[low : low + pieces])
    for file in files:
        file.close()
    path = form.finish(folder, len(rows), rows.shape[1])
    assert form.finish(folder, len(rows), rows.shape[1]) == path  # again, after an interruption
    return path


def read(path, suffix):
    """Texts, if the format holds them, and embeddings."""
    if suffix == ".npy":
        return None, np.load(path, allow_pickle=False)
    if suffix == ".parquet":
        frame = pl.read_parquet(path)
        return frame["text"].to_list(), frame["embedding"].to_numpy()
    objects = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    return (
        [each["text"] for each in objects],
        np.array([each["embedding"] for each in objects], np.float32),
    )


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("pieces", [1, 4, 100])
def test_a_file_holds_what_was_appended(tmp_path, suffix, pieces):
    path = written(tmp_path / "parts", suffix, pieces)
    texts, rows = read(path, suffix)
    assert texts in (None, TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, ROWS)
    whole = written(tmp_path / "whole", suffix, len(TEXTS))
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_no_sentences_give_an_empty_matrix(tmp_path, suffix):
    _, rows = read(written(tmp_path / "parts", suffix, 1, ROWS[:0]), suffix)
    assert rows.shape == (0, 3)


def test_an_array_has_the_bytes_that_numpy_writes(tmp_path):
    path = written(tmp_path / "parts", ".npy", 4)
    np.save(tmp_path / "numpy.npy", ROWS)
    assert path.read_bytes() == (tmp_path / "numpy.npy").read_bytes()


def test_parquet_is_written_by_row_groups(tmp_path, monkeypatch):
    from pyarrow.parquet import read_metadata

    monkeypatch.setattr(embedding_files, "_BLOCK_BYTES", 4 * 3 * 10)
    path = written(tmp_path / "parts", ".parquet", 4)
    facts = read_metadata(path)
    assert [facts.row_group(index).num_rows for index in range(facts.num_row_groups)] == [
        *(10, 10, 10, 5)
    ]
    np.testing.assert_array_equal(read(path, ".parquet")[1], ROWS)


def test_another_suffix_is_refused():
    with pytest.raises(InputError, match=r"e\.txt.*\.npy, \.parquet, \.jsonl"):
        format_of(Path("e.txt"))
    assert format_of(Path("a.b/e.npy")) is FORMATS[".npy"]
