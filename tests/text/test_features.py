"""Vocabulary, bigrams and ragged batches; tokens by name are those that the model reads."""

import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import InputError, ModelError
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures, load_features, read_tokens
from rejoinder.text.vocabulary import Vocabulary, bigram_buckets, word_buckets
from tiny_models import dan_model

WORDS = Vocabulary(("the", "cat", "sat", "on", "mat", "."))
texts = st.lists(st.text(alphabet="the cat sat on mat.x ", max_size=40), max_size=12)


def splitmix64(value: int) -> int:
    """Steele, Lea and Flood 2014, as in the reference implementation in C."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def slow_ids(text: str, features: WordFeatures) -> list[int]:
    """The definition, one token at a time."""
    from rejoinder.text.columns import tokenize

    index = {word: number for number, word in enumerate(features.vocabulary.words)}
    words = tokenize(pl.Series([text])).to_list()[0]
    tokens = [index.get(word, -1) for word in words]
    unknown, first = features.unknown_buckets, len(index) + features.unknown_buckets
    bigrams = [
        first + splitmix64((left << 32) | right) % features.buckets
        for left, right in pairwise(tokens)
        if features.buckets and left >= 0 and right >= 0
    ]
    hashed = [
        len(index) + zlib.crc32(word.encode()) % unknown if unknown and word not in index else token
        for word, token in zip(words, tokens, strict=True)
    ]
    return [token for token in hashed if token >= 0] + bigrams


def test_the_hash_of_bigrams_never_changes():
    left = np.array([0, 1, 199_999, 7], np.int32)
    right = np.array([0, 2, 3, 2**31 - 1], np.int32)
    assert bigram_buckets(left, right, 2**31 - 1).tolist() == [
        splitmix64((a << 32) | b) % (2**31 - 1)
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # first output of the reference with seed 0
    assert bigram_buckets(left, right, 200_000).tolist() == [7535, 140514, 145191, 145145]


def test_the_hash_of_unknown_words_never_changes():
    words = ["kerrville", "οδός", "123456789", ""]
    assert word_buckets(words, 65_536).tolist() == [58910, 20748, 0x3926, 0]
    assert zlib.crc32(b"123456789") == 0xCBF43926  # the check value of the catalogues of CRCs
    assert word_buckets(words[:0], 65_536).tolist() == []


@pytest.mark.parametrize("unknown_buckets", [0, 5])
@pytest.mark.parametrize("buckets", [0, 13])
@given(batch=texts)
def test_ids_are_those_of_the_definition(buckets, unknown_buckets, batch):
    features = WordFeatures(WORDS, buckets, unknown_buckets)
    ids = features(batch)
    assert len(ids) == len(batch)
    assert [ids[row].tolist() for row in range(len(batch))] == [
        slow_ids(text, features) for text in batch
    ]


def test_large_and_small_batches_give_the_same_ids():
    features = WordFeatures(WORDS, 13)
    batch = ["the cat", "", "unknown words", "sat on the mat ."] * 2_000
    whole = features(batch)
    assert all(
        whole[row].tolist() == features([batch[row]])[0].tolist() for row in range(7_990, 8_000)
    )


def test_vocabulary_is_by_count_then_by_spelling():
    columns = [pl.Series(["b b a a c", "d"]), pl.Series(["c d e", ""])]
    vocabulary, tokens = learn_vocabulary(columns, max_words=3, min_count=2)
    assert vocabulary.words == ("a", "b", "c")
    assert tokens == 9
    with pytest.raises(InputError, match="10 times in 9 tokens"):
        learn_vocabulary(columns, max_words=3, min_count=10)


def test_saved_features_come_back(tmp_path):
    features = WordFeatures(WORDS, 13, 7)
    assert features.save(tmp_path) == ["vocabulary.txt"]
    again = load_features(tmp_path, features.config())
    assert again == features
    older = {k: v for k, v in features.config().items() if k != "unknown_buckets"}
    assert load_features(tmp_path, older) == WordFeatures(WORDS, 13)
    with pytest.raises(ModelError, match=r"int.*>= 0.*unknown_buckets"):
        load_features(tmp_path, {**older, "unknown_buckets": -1})


@pytest.mark.parametrize(("fold_marks", "rules"), [(False, 3), (True, 4)])
def test_misspelt_words_are_read_as_known_ones(tmp_path, fold_marks, rules):
    words = Vocabulary(("where", "weather"))
    features = WordFeatures(words, 13, 7, fold_marks, spelling="nearest")
    features.save(tmp_path)
    assert features.config()["rules"] == rules
    assert load_features(tmp_path, features.config()) == features
    wrong, right = features(["Wehre WETHER zyx"])[0], features(["where weather zyx"])[0]
    assert wrong.tolist() == right.tolist()
    assert features.known(["wether", "zyx"]).lengths.tolist() == [1, 0]
    assert features.unknown_share(["wether where xyz"]).round(2).tolist() == [0.33]
    shares = features.unknown_share(["wether where xyz"], as_written=True)
    assert shares.round(2).tolist() == [0.67]
    with pytest.raises(ModelError, match="text rules 3"):
        load_features(tmp_path, {"kind": "subwords", "rules": 3, "max_tokens": 9})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"the\ncat", "cut short"),
        (b"the\n\ncat\n", "empty lines"),
        (b"the\nthe\n", "twice"),
        (b"\xff\n", "vocabulary.txt.*0xff"),
        (b"the\n", "1 words.*6"),
    ],
)
def test_a_damaged_vocabulary_is_refused(tmp_path, damage, message):
    (tmp_path / "vocabulary.txt").write_bytes(damage)
    with pytest.raises(ModelError, match=message):
        load_features(tmp_path, WordFeatures(WORDS, 0).config())


def test_foreign_rules_and_kinds_are_refused(tmp_path):
    with pytest.raises(ModelError, match=r"99.*rules"):
        load_features(tmp_path, {"kind": "words", "rules": 99})
    with pytest.raises(ModelError, match=r"letters.*kind"):
        load_features(tmp_path, {"kind": "letters", "rules": 1})
    with pytest.raises(ModelError, match=r"vocabulary\.txt"):
        load_features(tmp_path, WordFeatures(WORDS, 0).config())


AWKWARD = [
    "", " ", "\x00", "How OLD are you?", "don't DON’T o''clock 'tis rock'n'roll", "ﬁne ½ ①",
    "İSTANBUL ΑΣ ΑΣΑ ΣΑΣ", "e\u0301é \u0301x", "مرحبا ٣٤ بالعالم", "こんにちは世界", "😀👍🏽 ok",
    "\x1c\x85\u2028 a",
    "1,234.5e6", "ǅ ß ſ K Å", "\ud800 lone", "क्षत्रिय हिन्दी", "a\u200bb", "“so” ʼquoteʼ",
    "ﷺ", "Ⅷ ⅷ ㎏",
]  # fmt: skip


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("unknown_buckets", [0, 16])
def test_the_ids_are_those_of_the_features(text, unknown_buckets):
    model = dan_model(unknown_buckets=unknown_buckets, layers=(), width=5)
    [tokens] = read_tokens(model.features, [text])
    assert [token.id for token in tokens] == model.features([text])[0].tolist()


@pytest.mark.parametrize("text", AWKWARD)
def test_also_with_forty_thousand_words(text):
    model = read_model(shipped_model("rejoinder-small"))
    [tokens] = read_tokens(model.features, [text])
    assert [token.id for token in tokens] == model.features([text])[0].tolist()
    place = {word: row for row, word in enumerate(model.features.vocabulary.words)}
    # others may be misspelt, or letters
    known = [token for token in tokens if token.text in place and token.id < len(place)]
    assert [token.id for token in known] == [place[token.text] for token in known]


def test_bigrams_are_named_after_both_words_and_unknown_words_are_left_out():
    [tokens] = read_tokens(dan_model().features, ["how old zyxxyq are you"])
    assert [token.text for token in tokens] == ["how", "old", "are", "you", "how old", "are you"]
    assert (tokens[4].start, tokens[4].stop) == (0, 7)


def test_misspelt_words_have_the_ids_of_the_right_ones():
    features = replace(dan_model().features, spelling="nearest")
    wrong, right = read_tokens(features, ["waht zyxxyq is", "what zyxxyq is"])
    assert [token.id for token in wrong] == [token.id for token in right]
    assert [token.text for token in wrong] == ["waht", "is"]
    pairs = [[token.text for token in read_tokens(features, [t])[0]] for t in ("waht is", "waht")]
    assert pairs == [["waht", "is", "waht is"], ["waht"]]


def test_offsets_are_those_of_the_text_as_given_or_none():
    [tokens] = read_tokens(dan_model(unknown_buckets=16).features, ["½ ﬁne Ⅷ"])
    text = "½ ﬁne Ⅷ"
    assert [text[token.start : token.stop] for token in tokens[-2:]] == ["ﬁne", "Ⅷ"]
    [joined] = read_tokens(dan_model(unknown_buckets=16).features, ["e\u0301"])
    assert (joined[0].text, joined[0].start, joined[0].stop) == ("é", None, None)
