"""Folding: texts without the marks of their letters, from the vocabulary to the saved model."""

import polars as pl
import pytest

from rejoinder.errors import ModelError
from rejoinder.text.columns import learn_vocabulary
from rejoinder.text.features import WordFeatures, load_features, read_tokens
from rejoinder.text.normalize import fold_marks, normalize_text
from rejoinder.text.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Él comió una piña", "El comio una pina"),
        ("كِتَابٌ جــديد", "كتاب جديد"),
        ("أنا إلى آخر مدرسة", "انا الي اخر مدرسه"),
        ("IŞIK", "ışık"),
        ("İstanbul", "istanbul"),
        ("Cafe\u0301", "café"),
    ],
)
def test_spellings_of_a_text_become_one(one, other):
    assert normalize_text(fold_marks(one)) == normalize_text(fold_marks(other))


def test_what_has_no_marks_stays():
    for text in ("It's 5°C, no?", "привет 中文", "", "don’t"):
        assert fold_marks(text) == text


def features() -> WordFeatures:
    texts = [pl.Series(["Él comió", "el COMIO piña", "كِتَاب"])]
    vocabulary, _ = learn_vocabulary(texts, max_words=9, min_count=1, fold=True)
    return WordFeatures(vocabulary, fold_marks=True)


def test_words_are_learned_and_read_without_marks():
    folded = features()
    assert set(folded.vocabulary.words) == {"el", "comio", "pina", "كتاب"}
    one, other = folded(["El comió PIÑA", "él comio pina"])
    assert one.tolist() == other.tolist()
    assert folded.unknown_share(["él كِتَابٌ año"]).round(2).tolist() == [0.33]
    plain = WordFeatures(folded.vocabulary)
    assert plain(["él"]).lengths.tolist() == [0]


def test_tokens_name_their_places_in_the_text():
    [tokens] = read_tokens(features(), ["¡Él comió!"])
    assert [(token.text, token.start, token.stop) for token in tokens] == [
        ("el", 1, 3),
        ("comio", 4, 9),
    ]


def test_a_saved_model_folds_as_before(tmp_path):
    folded = features()
    folded.save(tmp_path)
    assert folded.config()["rules"] == 2
    again = load_features(tmp_path, folded.config())
    assert again == folded
    with pytest.raises(ModelError, match="rules"):
        load_features(tmp_path, {**folded.config(), "rules": 7})
    assert Vocabulary.load(tmp_path) == folded.vocabulary
