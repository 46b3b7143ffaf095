"""Several segments are searched as one: the best of all, of equal ones the oldest."""

import numpy as np
import pytest

from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.hits import segments_and_rows
from rejoinder.index.matching import search_segments
from rejoinder.index.segment import EncodedTexts
from rejoinder.inference.neighbours import nearest_rows

ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 8)


def unit(count, seed):
    rows = np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def segments(tmp_path):
    """Segments of 40, 20 and 10 rows, each with a row that the first has, too."""
    index, begin = create_index(tmp_path / "index", ABOUT, []), 0
    for number, count in enumerate((40, 20, 10)):
        rows = unit(count, number)
        rows[-1] = unit(40, 0)[0]
        names = [str(begin + row) for row in range(count)]
        index.add_encoded([EncodedTexts(names, names, rows)])
        begin += count
    assert len(index.segments) == 3
    return index.segments


@pytest.mark.parametrize("top_k", [1, 5, 70, 100])
def test_what_is_found_is_what_one_search_of_all_finds(segments, top_k):
    rows = np.concatenate([segment.embeddings for segment in segments])
    begins = np.cumsum([0, *(segment.entry.rows for segment in segments)])
    queries = np.concatenate([unit(5, 9), rows[:1]])
    expected, scores = nearest_rows(queries, rows, top_k)
    found = search_segments(segments, queries, top_k, absent=[None] * len(segments))
    for one, places, cosines in zip(found, expected, scores, strict=True):
        numbers, where = segments_and_rows(one.places)
        assert (begins[numbers] + where).tolist() == places.tolist()
        np.testing.assert_array_equal(one.scores, cosines)


def test_absent_texts_are_not_found(segments):
    absent = [np.ones(segment.entry.rows, np.bool_) for segment in segments]
    absent[1][3] = False
    [found] = search_segments(segments, unit(1, 9), 5, absent=absent)
    numbers, rows = segments_and_rows(found.places)
    assert (numbers.tolist(), rows.tolist()) == ([1], [3])
