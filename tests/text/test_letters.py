"""Unknown words as letters: ids, the saved features, and the tokens that are shown."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.inference.tokens import read_tokens
from rejoinder.text.features import WordFeatures, load_features
from rejoinder.text.letters import letter_sequences
from rejoinder.text.normalize import tokens_of
from rejoinder.text.vocabulary import Vocabulary

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


def test_a_word_of_one_letter_has_a_sequence():
    assert letter_sequences("a") == ["<a>"]


def test_saved_features_read_as_before(tmp_path):
    made = features()
    made.save(tmp_path)
    assert load_features(tmp_path, made.config()) == made
    assert "letter_buckets" not in WordFeatures(made.vocabulary).config()


def test_tokens_of_unknown_words_are_their_letters():
    [tokens] = read_tokens(features(), ["how odd?"])
    assert [token.text for token in tokens] == ["how", *letter_sequences("odd"), "?"]
    assert {(token.start, token.stop) for token in tokens[1:-1]} == {(4, 7)}
    assert [token.id for token in tokens] == slow_ids("how odd?")


@pytest.mark.parametrize("text", ["how are ?", ""])
def test_known_words_are_read_as_without_letters(text):
    plain = WordFeatures(Vocabulary(WORDS))
    assert np.array_equal(features()([text]).ids, plain([text]).ids)
