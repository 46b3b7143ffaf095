"""The families of features of `benchmarks/systems`, on a dictionary of a few words."""

import json
from pathlib import Path

import numpy as np
import pytest
import zstandard

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.scoring.families import FAMILIES
from rejoinder.scoring.scorer import PairFeatures

SYNSETS = [
    {"id": "1-n", "members": ["entity"]},
    {"id": "2-n", "members": ["animal"], "hypernym": ["1-n"]},
    {"id": "3-n", "members": ["dog"], "hypernym": ["2-n"]},
    {"id": "4-n", "members": ["wolf"], "hypernym": ["2-n"]},
    {"id": "5-n", "members": ["car"], "hypernym": ["1-n"]},
    {"id": "6-v", "members": ["run"]},
]
FREQUENT = {"entity": 3, "animal": 4, "dog": 4.5, "wolf": 4.5, "car": 5, "run": 5, "the": 5}


@pytest.fixture
def wordnet(tmp_path, monkeypatch):
    folder = Path(__file__).resolve().parents[1] / "benchmarks/systems"
    monkeypatch.syspath_prepend(str(folder))
    import families
    import wordnet as module

    lines = {
        module.WORDNET: "\n".join(map(json.dumps, SYNSETS)),
        module.FREQUENCIES: "\n".join(f"{word}\t{value}" for word, value in FREQUENT.items()),
    }
    for name, content in lines.items():
        (tmp_path / name).write_bytes(zstandard.compress(content.encode()))
    found = module.WordNet(tmp_path)
    known = set(FAMILIES)
    families.register(found)
    yield found
    for name in set(FAMILIES) - known:
        FAMILIES.remove(name)


def test_words_share_what_is_above_them(wordnet):
    share = wordnet.shared_information
    assert share("The dogs ran.", "A dog runs!") == pytest.approx(1)
    assert 1 > share("a dog", "a wolf") > share("a dog", "a car") > 0
    assert share("a dog", "zzz") == share("", "dog") == share("", "") == 0
    assert share("zzz", "ZZZ") == 1
    assert share("dog zzz", "wolf") == pytest.approx(share("wolf", "dog zzz"))
    assert [wordnet.kind(word) for word in ("dogs", "ran", "the", "zzz")] == [
        "noun", "verb", "other", "other",
    ]  # fmt: skip


def test_features_are_finite_and_ignore_order_and_neighbours(wordnet):
    texts = ["A dog runs.", "The wolf ran to the car and the car ran.", "", "!?", "dog dog dog"]
    added = (
        "overlap", "characters", "information", "bags", "pooled", "translation", "sequences",
        "kinds",
    )  # fmt: skip
    compute = PairFeatures(SentenceEncoder(threads=1), [FAMILIES[name] for name in added], 1)
    first, second = texts * len(texts), [text for text in texts for _ in texts]
    found = compute(first, second)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, compute(second, first), atol=1e-5)
    alone = np.concatenate([compute([a], [b]) for a, b in zip(first, second, strict=True)])
    np.testing.assert_allclose(found, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "feature", "first", "second", "expected"),
    [
        ("overlap", "shared stems", "she plays", "she played", 1),
        ("overlap", "shared words", "a b c d", "a b x y", 0.5),
        ("overlap", "shared pairs of words", "a b c", "a b x", 0.5),
        ("overlap", "shared weight", "In 2012 I saw two cats", "In 2012 I saw two cats", 1),
        ("characters", "shared sequences of 3 characters", "two cats", "two cats", 1),
    ],
)
def test_a_feature_written_out(wordnet, family, feature, first, second, expected):
    family = FAMILIES[family]
    [found] = PairFeatures(SentenceEncoder(threads=1), [family], 1)([first], [second])
    assert found[family.features.index(feature)] == pytest.approx(expected)


def test_a_text_translates_itself_best(wordnet):
    compute = PairFeatures(SentenceEncoder(threads=1), [FAMILIES["translation"]], 1)
    same, other = compute(["the dog runs home now"] * 2, ["the dog runs home now", "now the cat"])
    errors = FAMILIES["translation"].features.index("word error rate")
    assert same[errors] == 0 < other[errors]
    rest = [row for row in range(len(same)) if row != errors]
    assert (same[rest] > other[rest]).all()
