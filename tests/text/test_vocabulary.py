"""Unknown words as letters: ids, the saved features, and the tokens that are shown."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import ModelError
from rejoinder.text.features import WordFeatures, load_features, read_tokens
from rejoinder.text.normalize import tokens_of
from rejoinder.text.vocabulary import Vocabulary, letter_sequences

BUCKETS = 50
WORDS = ("how", "are", "?")


def features() -> WordFeatures:
    return WordFeatures(Vocabulary(WORDS), letter_buckets=BUCKETS)


def slow_ids(text: str) -> list[int]:
    """The definition, a token at a time."""
    ids = []
    for token in tokens_of(text):
        if token in WORDS:
            ids.append(WORDS.index(token))
        else:
            edged = f"<{token}>"
            parts = [edged[at : at + n] for n in range(3, 7) for at in range(len(edged) - n + 1)]
            ids += [len(WORDS) + crc32(part.encode()) % BUCKETS for part in parts]
    return ids


@settings(max_examples=50)
@given(st.lists(st.text("how are?youİß ", max_size=20), max_size=6))
def test_ids_are_those_of_the_definition(texts):
    batch = features()(texts)
    assert [row.tolist() for row in batch] == [slow_ids(text) for text in texts]
    assert features().rows == len(WORDS) + BUCKETS


def test_arabic_words_have_buckets_after_those_of_all_others():
    made = replace(features(), arabic_letter_buckets=20)
    first = len(WORDS) + BUCKETS
    arabic, latin = made(["\u0643\u062a\u0627\u0628", "kitab"])
    parts = letter_sequences("\u0643\u062a\u0627\u0628")
    assert arabic.tolist() == [first + crc32(part.encode()) % 20 for part in parts]
    assert latin.tolist() == slow_ids("kitab")
    assert made.rows == first + 20


def test_a_word_of_one_letter_has_a_sequence():
    assert letter_sequences("a") == ["<a>"]


@pytest.mark.parametrize("arabic", [0, 20])
def test_saved_features_read_as_before(tmp_path, arabic):
    made = replace(features(), arabic_letter_buckets=arabic)
    made.save(tmp_path)
    assert load_features(tmp_path, made.config()) == made
    assert "letter_buckets" not in WordFeatures(made.vocabulary).config()


def test_letters_of_arabic_words_alone_are_refused(tmp_path):
    made = features()
    made.save(tmp_path)
    config = {**made.config(), "letter_buckets": 0, "arabic_letter_buckets": 20}
    with pytest.raises(ModelError, match="letters of Arabic words alone"):
        load_features(tmp_path, config)


def test_tokens_of_unknown_words_are_their_letters():
    [tokens] = read_tokens(features(), ["how odd?"])
    assert [token.text for token in tokens] == ["how", *letter_sequences("odd"), "?"]
    assert {(token.start, token.stop) for token in tokens[1:-1]} == {(4, 7)}
    assert [token.id for token in tokens] == slow_ids("how odd?")


@pytest.mark.parametrize("text", ["how are ?", ""])
def test_known_words_are_read_as_without_letters(text):
    plain = WordFeatures(Vocabulary(WORDS))
    assert np.array_equal(features()([text]).ids, plain([text]).ids)
