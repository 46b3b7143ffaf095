"""A segment: its rows by their ids, the nearest of them, and what it tells of damage."""

import numpy as np
import pytest
from msgspec.structs import replace

from rejoinder.errors import InputError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.segment import (
    BY_MEANING,
    EncodedTexts,
    Segment,
    encoded_texts,
    name_of_deletions,
    places_of,
)
from rejoinder.index.where import conditions_of

ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 4)
NAMES = [f"id{number}" for number in range(6)]
ROWS = np.eye(4, dtype=np.float32)[[0, 1, 2, 3, 0, 1]]
SAID = [{"author": "Anna" if number % 2 else "Ben"} for number in range(6)]


@pytest.fixture(params=["float32", "float16"])
def index(request, tmp_path):
    texts = [f"text {number}" for number in range(6)]
    parts = [EncodedTexts(NAMES, texts, ROWS, SAID)]
    return create_index(tmp_path / "index", replace(ABOUT, dtype=request.param), parts)


def test_ids_have_their_rows(index):
    [segment] = index.segments
    assert segment.rows_of([*NAMES, "other"]).tolist() == [*range(6), -1]
    assert places_of([segment], ["id3", "other"]) == [(0, 3), None]


def test_the_nearest_rows_come_with_true_scores(index):
    [segment] = index.segments
    query = np.array([[0.8, 0.6, 0, 0]], np.float32)
    rows, scores = segment.nearest(query, 3, None)
    assert rows.tolist() == [[0, 4, 1]]
    np.testing.assert_allclose(scores, [[0.8, 0.8, 0.6]], rtol=1e-6)
    chosen = np.array([1, 3])
    for mapped in (True, False):
        found = segment.scores(chosen, query[0], map_file=mapped)
        np.testing.assert_allclose(found, [0.6, 0], rtol=1e-6)


def test_texts_that_are_deleted_or_do_not_meet_conditions_are_absent(index):
    assert index.segments[0].absent() is None
    index.delete(["id1"])
    [segment] = index.segments
    assert np.flatnonzero(segment.absent()).tolist() == [1]
    of_anna = segment.absent(conditions_of({"author": "anna"}))
    assert np.flatnonzero(~of_anna).tolist() == [3, 5]
    [part] = encoded_texts([segment])
    assert part.ids == [name for name in NAMES if name != "id1"]
    np.testing.assert_array_equal(part.embeddings, np.delete(ROWS, 1, axis=0))


def test_a_file_that_is_cut_later_is_named(index):
    [segment] = index.segments
    segment.refuse_cut(BY_MEANING)
    path = index.folder / segment.entry.name / "embeddings.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"embeddings\.bin"):
        segment.refuse_cut(BY_MEANING)
    with pytest.raises(InputError, match=r"embeddings\.bin"):
        Segment(index.folder, segment.entry, index.manifest)


def test_other_deleted_rows_have_another_file():
    one, other = (np.array(rows, np.uint32) for rows in ([1], [2]))
    assert name_of_deletions("000002", one) == name_of_deletions("000002", one.copy())
    assert name_of_deletions("000002", one) != name_of_deletions("000002", other)
