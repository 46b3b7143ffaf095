"""`index.json` comes back as it was, and what contradicts itself is refused."""

import json

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.index.manifest import (
    FILE,
    IndexModel,
    Manifest,
    Probing,
    SegmentFacts,
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
