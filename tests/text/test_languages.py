"""Stems by the language of texts, and digits within words."""

import pytest

from rejoinder.errors import ModelError
from rejoinder.text.languages import language_to_stem, languages_in, stemmer, with_digits_in_words
from rejoinder.text.normalize import words_of


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("english", "run running runs"),
        ("german", "katze katzen"),
        ("french", "chat chats"),
        ("spanish", "gato gatos"),
        ("", "same"),
    ],
)
def test_forms_of_a_word_have_one_stem(language, words):
    assert len({*stemmer(language)(words.split())}) == 1


def test_a_possessive_is_the_word():
    assert stemmer("english")(["ann's", "ann"]) == ["ann", "ann"]


def test_an_unknown_language_is_named():
    with pytest.raises(ModelError, match="klingon"):
        stemmer("klingon")


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["It is what you have, and that is the end of it."], "english"),
        (["Ich weiß nicht, wo die Katze ist und was sie frisst."], "german"),
        (["Je ne sais pas où est le chat et les chiens."], "french"),
        (["42", "¿?", ""], ""),
        ([], ""),
    ],
)
def test_a_language_is_told_by_its_frequent_words(texts, language):
    assert language_to_stem(texts) == language


def test_languages_of_texts_all_over_them_have_shares():
    english = ["What is it that you have, and the cat?"] * 9_000
    german = ["Ich weiß nicht, wo die Katze ist und was das ist."] * 1_000
    shares = languages_in([*english, *german])
    assert list(shares) == ["english", "german"]
    assert 0.05 < shares["german"] < 0.15


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("El perro en la casa de Ana", "spanish"),
        ("La maison de Paul est en bas.", "french"),
        ("Es ist kalt.", "german"),
        ("O bir kedi.", "turkish"),
    ],
)
def test_words_of_several_languages_mislead_nobody(text, language):
    assert [*languages_in([text])] == [language]


def test_a_word_with_digits_is_one_word():
    assert len(words_of(with_digits_in_words("mp3"))) == 1
    assert len(words_of(with_digits_in_words("3 mp"))) == 2
    assert words_of(with_digits_in_words("an mp3")) != words_of(with_digits_in_words("an mp4"))
