"""Subwords: the same twice, defined for every string."""

import polars as pl
import pytest

from rejoinder.errors import InputError, ModelError
from rejoinder.text.features import load_features
from rejoinder.text.vocabulary import SubwordFeatures, learn_subwords

TEXTS = pl.Series(["how old are you?", "how are you today", "you are how old"] * 20)
AWKWARD = ["", " ", "x" * 100_000, "👩‍👩‍👧", "שלום עולם", "\ud83d", "a\x00b", "ﬁne’s", "\n"]


@pytest.fixture(scope="module")
def features() -> SubwordFeatures:
    return learn_subwords([TEXTS], size=300, min_count=2, max_tokens=8)


def test_learning_twice_gives_the_same(features):
    assert learn_subwords(
        [TEXTS[:30], TEXTS[30:]], size=300, min_count=2, max_tokens=8
    ).definition == (features.definition)


def test_frequent_words_are_one_subword(features):
    ids = features(["how are you", "HOW ARE YOU"])
    assert ids.lengths.tolist() == [3, 3]
    assert ids[0].tolist() == ids[1].tolist()
    assert ids.ids.max() < features.rows <= 300


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_strings_have_the_same_ids_alone_and_together(features, text):
    alone = features([text])[0].tolist()
    together = features(["how", text, "old"])
    assert together[1].tolist() == alone
    assert len(alone) <= 8
    assert bool(alone) == bool(text)


def test_saved_features_come_back(features, tmp_path):
    assert features.save(tmp_path) == ["subwords.json"]
    again = load_features(tmp_path, features.config())
    assert again(AWKWARD).ids.tolist() == features(AWKWARD).ids.tolist()


def test_damage_is_named(features, tmp_path):
    with pytest.raises(ModelError, match="can't be read"):
        load_features(tmp_path, features.config())
    features.save(tmp_path)
    with pytest.raises(ModelError, match="the folder is damaged"):
        load_features(tmp_path, {**features.config(), "subwords": 300 + features.rows})
    with pytest.raises(ModelError, match="max_tokens"):
        load_features(tmp_path, {**features.config(), "max_tokens": 0})
    (tmp_path / "subwords.json").write_text("{}")
    with pytest.raises(ModelError, match="byte-level BPE"):
        load_features(tmp_path, features.config())


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(InputError, match="at least 256"):
        learn_subwords([TEXTS], size=10, min_count=2, max_tokens=8)
