"""The folder of a scorer: it comes back as it was, and damage is named."""

import shutil

import numpy as np
import pytest

from rejoinder.errors import ModelError
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import known_families, read_scorer, shipped_scorer, write_scorer


def test_what_was_read_is_written_as_it_was(tmp_path):
    facts, regression, interval, pairs = read_scorer(shipped_scorer())
    write_scorer(tmp_path / "copy", facts, regression, interval, pairs)
    again = read_scorer(tmp_path / "copy")
    assert again[0] == facts
    for one, other in zip(interval, again[2], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(pairs, again[3])


def test_families_are_known_by_their_features():
    facts, *_ = read_scorer(shipped_scorer())
    known = [family.name for family in known_families(facts.families, "here")]
    assert known == list(facts.families)
    assert {*facts.families} <= {*FAMILIES}
    with pytest.raises(ModelError, match="here"):
        known_families({"embeddings": ["other"]}, "here")


def test_each_file_that_is_cut_is_named(tmp_path):
    files = [path.name for path in shipped_scorer().iterdir() if path.is_file()]
    for name in files:
        folder = tmp_path / name
        shutil.copytree(shipped_scorer(), folder)
        (folder / name).write_bytes((folder / name).read_bytes()[:-2])
        with pytest.raises(ModelError, match=name.replace(".", r"\.")):
            read_scorer(folder)
