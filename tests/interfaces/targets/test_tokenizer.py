"""The text rules as a tokenizer of `tokenizers`: the same tokens as ours, for every character."""

import json

import pytest
from tokenizers import Tokenizer

from awkward_texts import awkward_texts, characters
from rejoinder.errors import InputError
from rejoinder.interfaces.targets import UNKNOWN, tokenizer_json
from rejoinder.text.columns import as_series, normalize, tokenize
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary


def ours(texts):
    return tokenize(as_series(texts)).to_list()


def library(words):
    return Tokenizer.from_str(tokenizer_json(words))


def theirs(tokenizer, texts):
    """The tokens as strings, whether known or not."""
    pieces = map(tokenizer.normalizer.normalize_str, texts)
    return [
        [token for token, _ in tokenizer.pre_tokenizer.pre_tokenize_str(piece)] for piece in pieces
    ]


@pytest.fixture(scope="module")
def all_letters():
    """Words of which every character can be part of a known one."""
    return sorted({token for tokens in ours(characters()) for token in tokens})


def test_every_character_alone_gives_our_tokens(all_letters):
    tokenizer = library(all_letters)
    texts = [f"a{character}b 1{character}2 .{character}" for character in characters()]
    assert theirs(tokenizer, texts) == ours(texts)


def test_awkward_texts_give_our_tokens(all_letters):
    texts = awkward_texts(3_000, seed=1)
    expected = ours(texts)
    assert theirs(library(all_letters), texts) == expected
    assert len({token for tokens in expected for token in tokens}) > 1_000


@pytest.mark.parametrize(
    "text",
    [
        "ΟΔΟΣ",
        "Σ",
        "ΑΣ Β",
        "ΑΣ'Β",
        "ΑΣ.",
        "ΑΣ\u0301Α",
        "Α\u0301Σ",
        "1Σ",
        "ΑΣΣ",
        "aʰΣ",
        "Α'Σ",
        "Α..Σ",
    ],
)
def test_a_capital_sigma_at_the_end_of_a_word_gets_its_own_small_letter(text):
    steps = library(["a"]).normalizer
    assert steps.normalize_str(text) == normalize(as_series([text]))[0]


def test_ids_are_those_of_the_words_and_one_id_stands_for_all_others():
    words = tuple(dict.fromkeys(token for tokens in ours(awkward_texts(500)) for token in tokens))
    known, texts = words[: len(words) // 2], awkward_texts(1_000, seed=2)
    tokenizer, features = library(known), WordFeatures(Vocabulary(known))
    unknown = len(known)
    assert tokenizer.token_to_id(UNKNOWN) == unknown
    batch = features(texts)
    counted = 0
    for number, encoding in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
        ids = [token for token in encoding.ids if token != unknown]
        counted += len(encoding.ids) - len(ids)
        assert ids == batch.ids[batch.offsets[number] : batch.offsets[number + 1]].tolist()
    assert counted > 500


def test_steps_for_characters_that_no_known_word_has_are_left_out():
    def steps(words):
        return json.loads(tokenizer_json(words))["normalizer"]["normalizers"]

    few, more = steps(["how", "age"]), steps(["how", "quay"])
    assert few[0]["content"] == "令和"  # it changes where tokens begin
    assert len(more) - len(few) == 2  # two forms of a raised q


def test_a_word_that_has_the_name_of_the_unknown_token_is_refused():
    with pytest.raises(InputError, match=r"lists '\[UNK\]', which no sentence can contain"):
        tokenizer_json(["how", UNKNOWN])
