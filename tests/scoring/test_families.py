"""What holds for every family of features, and what single ones tell apart."""

import numpy as np
import pytest

from awkward_texts import awkward_texts
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.scoring.batch import MOST_WORDS, common_subsequence, one_to_one
from rejoinder.scoring.families import FAMILIES, Family
from rejoinder.scoring.scorer import PairFeatures

AWKWARD = awkward_texts(200)
FIRST = [
    "A man is playing a guitar.", "", "", "!?", "Two dogs run in Oslo", "the man the man the man",
    "它很好。", "très bien, Élodie", "word " * 500, *AWKWARD,
]  # fmt: skip
SECOND = [
    "A man plays no guitar.", "", "something", "...", "3 dogs run in Bergen", "a man",
    "它不好。", "Très bien, Anna", "word word", *reversed(AWKWARD),
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(read_model(shipped_model("rejoinder-small")))


@pytest.fixture(params=list(FAMILIES))
def family(request):
    return FAMILIES[request.param]


def computed(encoder, family, first, second, threads=1):
    return PairFeatures(encoder, [family], threads)(first, second)


def value(encoder, name, feature, first, second):
    family = FAMILIES[name]
    return computed(encoder, family, [first], [second])[0, family.features.index(feature)]


def test_a_family_has_the_name_of_its_line_and_features_of_its_own(family):
    assert FAMILIES[family.name] is family
    others = [name for each in FAMILIES.values() if each is not family for name in each.features]
    assert len({*family.features}) == len(family.features)
    assert not {*family.features} & {*others}


def test_features_of_any_text_are_finite(encoder, family):
    found = computed(encoder, family, FIRST, SECOND)
    assert found.shape == (len(FIRST), len(family.features))
    assert found.dtype == np.float32
    assert np.isfinite(found).all()


def test_the_order_of_two_texts_does_not_matter(encoder, family):
    found = computed(encoder, family, FIRST, SECOND)
    assert np.array_equal(found, computed(encoder, family, SECOND, FIRST))


def test_features_do_not_depend_on_the_batch(encoder, family):
    """Up to the rounding of products of other shapes, at which no feature may jump here."""
    many = computed(encoder, family, FIRST * 5, SECOND * 5, threads=2)
    each = [computed(encoder, family, [a], [b]) for a, b in zip(FIRST, SECOND, strict=True)]
    assert np.allclose(many, np.concatenate(each * 5), atol=1e-4)


def test_no_pairs_have_no_features(encoder, family):
    assert computed(encoder, family, [], []).shape == (0, len(family.features))


def test_the_same_text_is_as_near_as_can_be(encoder):
    text = "In 2012 Anna did not see two cats in Oslo"
    for name, feature in (
        ("embeddings", "cosine"), ("alignment", "lower cover"),
        ("alignment", "aligned weight"), ("edits", "common subsequence"),
        ("edits", "neighbours that stay"), ("numbers", "shared numbers"), ("names", "shared names"),
    ):  # fmt: skip
        assert value(encoder, name, feature, text, text) == pytest.approx(1, abs=1e-5), feature


@pytest.mark.parametrize(
    ("name", "feature", "first", "second", "expected"),
    [
        ("numbers", "shared numbers", "two dogs", "2 dogs", 1),
        ("numbers", "shared numbers", "two dogs", "3 dogs", 0),
        ("names", "shared names", "I saw Anna", "I saw Bob", 0),
        ("names", "a name", "Anna saw me", "anna saw me", 0),
        ("negation", "other negations", "it works", "it doesn't work", 1),
        ("negation", "other negations", "it never works", "it does not work", 0),
        ("edits", "common subsequence", "a b c d", "b a c d", 0.75),
        ("edits", "neighbours that change places", "dog bit man", "man bit dog", 1),
        ("lengths", "difference of lengths", "a b c d", "a", 0.75),
    ],
)
def test_a_feature_written_out(encoder, name, feature, first, second, expected):
    assert value(encoder, name, feature, first, second) == pytest.approx(expected)


def test_long_texts_are_compared_by_their_first_words(encoder):
    start = " ".join(f"word{n}" for n in range(MOST_WORDS))
    one, other = f"{start} cats", f"{start} dogs"
    assert value(encoder, "edits", "common subsequence", one, other) == 1
    assert value(encoder, "embeddings", "cosine", one, other) < 1


def slow_common_subsequence(same):
    rows = np.zeros((same.shape[0] + 1, same.shape[1] + 1), int)
    for i, j in np.ndindex(*same.shape):
        rows[i + 1, j + 1] = rows[i, j] + 1 if same[i, j] else max(rows[i, j + 1], rows[i + 1, j])
    return rows[-1, -1]


@pytest.mark.parametrize("width", [1, 5, 63, 64])
def test_common_subsequences_are_those_of_the_table(width):
    draw = np.random.default_rng(width)
    words = draw.integers(0, 4, (6, 2, width))
    same = words[:, 0, :, None] == words[:, 1, None, :]
    assert common_subsequence(same).tolist() == [slow_common_subsequence(each) for each in same]


def test_words_are_aligned_nearest_first():
    draw = np.random.default_rng(0)
    cosines = draw.uniform(-1, 1, (50, 6, 4)).astype(np.float32)
    partners, reached = one_to_one(cosines)
    for near, found, values in zip(cosines, partners, reached, strict=True):
        left, expected = near.copy(), np.full(6, -1)
        while left.max() >= 0.3:
            one, other = np.unravel_index(left.argmax(), left.shape)
            expected[one] = other
            left[one], left[:, other] = -1, -1
        assert found.tolist() == expected.tolist()
        aligned = found >= 0
        assert values[aligned].tolist() == near[aligned, found[aligned]].tolist()


def test_a_family_can_be_added(encoder):
    def both_shout(batch):
        texts = zip(*(side.texts for side in batch.sides), strict=True)
        return [np.array([a.isupper() and b.isupper() for a, b in texts])]

    shouts = Family("shouts", ("both shout",), both_shout)
    FAMILIES.register("shouts", shouts)
    try:
        assert computed(encoder, FAMILIES["shouts"], ["NO", "no"], ["YES", "YES"]).tolist() == [
            [1], [0],
        ]  # fmt: skip
    finally:
        FAMILIES.remove("shouts")
