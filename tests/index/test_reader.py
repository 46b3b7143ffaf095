"""What an index holds: counts of authors and channels, and its first and last time."""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import create_index
from rejoinder.index.reader import between_two
from rejoinder.index.segment import EncodedTexts

ABOUT = Manifest(IndexModel("model", "ab" * 32, None, None), 2)


def part(known):
    rows = np.array([[1, 0], [0, 1], [1, 0]], np.float32)[: len(known)]
    return EncodedTexts(list(known), [f"message {name}" for name in known], rows, [*known.values()])


@pytest.fixture
def index(tmp_path):
    first = part({
        "a": {"author": "Ann", "source": "help", "time": 7.0},
        "b": {"author": "Bob", "time": 3.0},
        "c": {"author": "Ann", "source": "help"},
    })  # fmt: skip
    made = create_index(tmp_path / "index", ABOUT, [first])
    made.add_encoded([part({"d": {"author": "Ann", "source": "talk", "time": 9.0}})])
    return made


def test_authors_and_channels_are_counted_over_all_additions(index):
    summary = index.summary()
    assert (summary.texts, summary.first, summary.last) == (4, 3.0, 9.0)
    assert summary.authors == [("Ann", 3), ("Bob", 1)]
    assert summary.sources == [("help", 2), ("talk", 1)]
    assert summary.threads


def test_messages_between_two_are_counted_over_all_additions(index):
    assert sum(between_two(index.segments).values()) == 3
    more = {name: {"author": name, "source": "help"} for name in ("Bob", "Cid")}
    index.add_encoded([part(more)])
    assert sum(between_two(index.segments).values()) == 1
    index.delete("Cid")
    assert sum(between_two(index.segments).values()) == 4


def test_deleted_texts_do_not_count(index):
    index.delete(["b", "d"])
    summary = index.summary()
    assert (summary.texts, summary.first, summary.last) == (2, 7.0, 7.0)
    assert summary.authors == [("Ann", 2)]


def test_texts_that_are_not_messages_are_only_counted(tmp_path):
    rows = np.eye(2, dtype=np.float32)
    plain = create_index(
        tmp_path / "plain", ABOUT, [EncodedTexts(["a", "b"], ["x", "y"], rows, ())]
    )
    summary = plain.summary()
    assert (summary.texts, summary.first, summary.authors) == (2, None, [])
    assert not summary.threads


def test_embeddings_of_ids_come_in_their_order(index):
    rows = index.embeddings(["d", "b", "a"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert index.embeddings([]).shape == (0, 2)
    with pytest.raises(InputError, match="'z'"):
        index.embeddings(["z"])


def test_a_message_is_read_with_those_around_it(index):
    hit = index.around("c", 5)
    assert (hit.id, [one.id for one in hit.before], list(hit.after)) == ("c", ["a"], [])
    with pytest.raises(InputError, match="'z'"):
        index.around("z", 1)
