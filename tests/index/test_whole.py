"""All texts of an index as columns."""

import numpy as np
import pytest

from rejoinder.index.folder import create_index
from rejoinder.index.manifest import IndexModel, Manifest
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.where import conditions_of

DIM = 4
EMPTY = Manifest(IndexModel("model", "ab" * 32, None, None), DIM)


def encoded(ids):
    rows = np.eye(DIM, dtype=np.float32)[[int(one) % DIM for one in ids]]
    about = [{"author": "ann" if int(one) % 2 else "bob"} for one in ids]
    return EncodedTexts(list(ids), [f"text {one}" for one in ids], rows, about)


@pytest.mark.parametrize("deleted", [[], ["1", "5"]])
def test_columns_are_those_of_all_segments_without_deleted_texts(tmp_path, deleted):
    index = create_index(tmp_path / "index", EMPTY, [encoded("0123")])
    index.add_encoded([encoded("4567")])
    index.delete(deleted)
    whole = index.whole()
    parts = list(index.encoded())
    ids = [name for part in parts for name in part.ids]
    assert len(whole) == len(ids) == 8 - len(deleted)
    assert list(whole.ids) == ids
    assert whole.texts[1:] == [text for part in parts for text in part.texts][1:]
    assert list(whole.about) == [one for part in parts for one in part.about]
    assert np.array_equal(whole.embeddings, np.concatenate([part.embeddings for part in parts]))
    assert whole.meeting(conditions_of({"author": "Ann"})).tolist() == [
        int(one) % 2 == 1 for one in ids
    ]
    with pytest.raises(IndexError):
        whole.ids[len(ids)]


def test_one_segment_is_not_copied(tmp_path):
    index = create_index(tmp_path / "index", EMPTY, [encoded("0123")])
    assert not index.whole().embeddings.flags.owndata


def test_an_empty_index_has_empty_columns(tmp_path):
    whole = create_index(tmp_path / "index", EMPTY, []).whole()
    assert (len(whole), whole.embeddings.shape, list(whole.texts)) == (0, (0, DIM), [])
    assert whole.meeting(conditions_of({"author": "ann"})).shape == (0,)
