"""All texts of an index as columns."""

import numpy as np
import pytest

from rejoinder.conversations.collection import WholeIndex
from rejoinder.index import lists
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.segment import EncodedTexts
from rejoinder.index.where import conditions_of
from rejoinder.inference.neighbours import nearest_rows

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
    whole = WholeIndex(index)
    parts = list(index.encoded())
    ids = [name for part in parts for name in part.ids]
    assert len(whole) == len(ids) == 8 - len(deleted)
    assert list(whole.ids) == ids
    assert whole.texts[1:] == [text for part in parts for text in part.texts][1:]
    assert list(whole.about) == [one for part in parts for one in part.about]
    assert np.array_equal(
        whole.rows(np.arange(len(whole))), np.concatenate([part.embeddings for part in parts])
    )
    assert np.array_equal(whole.rows(np.array([4, 0])), whole.rows(np.arange(5))[[4, 0]])
    assert whole.meeting(conditions_of({"author": "Ann"})).tolist() == [
        int(one) % 2 == 1 for one in ids
    ]
    with pytest.raises(IndexError):
        whole.ids[len(ids)]


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_the_nearest_of_some_texts_are_found(tmp_path, monkeypatch, listed, share):
    if listed:
        pytest.importorskip("faiss")
        monkeypatch.setattr(lists, "LEAST_ROWS", 1_000)
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((3_000, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    names = [str(number) for number in range(len(rows))]
    index = create_index(tmp_path / "index", EMPTY, [EncodedTexts(names, names, rows)])
    index.delete(["7", "8"])
    rows = np.delete(rows, [7, 8], axis=0)
    assert index.is_exact != listed
    wanted, queries = draw.random(len(rows)) < share, rows[[0, 500]]
    right = nearest_rows(queries, rows, 20, absent=~wanted)
    for (places, cosines), true, scores in zip(
        WholeIndex(index).nearest(queries, 20, wanted), *right, strict=True
    ):
        assert wanted[places].all()
        assert len(np.intersect1d(places, true)) >= (18 if listed else 20)
        assert cosines[0] == pytest.approx(scores[0], abs=1e-6)
        assert (np.diff(cosines) <= 0).all()


def test_an_empty_index_has_empty_columns(tmp_path):
    whole = WholeIndex(create_index(tmp_path / "index", EMPTY, []))
    assert (len(whole), list(whole.texts)) == (0, [])
    assert whole.rows(np.empty(0, np.int64)).shape == (0, DIM)
    assert whole.meeting(conditions_of({"author": "ann"})).shape == (0,)
