"""Rows of words of a language fitted to the English of a small model."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import language_rows
from language_rows import (
    ARABIC,
    SPANISH,
    TABLE,
    TURKISH,
    Corpus,
    LanguageRows,
    Translations,
    fit,
    loss_gradient,
    main,
    with_language,
)
from rejoinder import SentenceEncoder
from rejoinder.models.folder import read_model, write_model
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import load_config
from tiny_models import dan_model

ENGLISH = ("book", "house", "school", "river", "teacher")
ARABIC_STEMS = ("كتاب", "بيت", "مدرسه", "نهر", "معلم")
TURKISH_STEMS = ("kitap", "hane", "okul", "nehir", "hoca")
STEMS = {ARABIC: ARABIC_STEMS, TURKISH: TURKISH_STEMS}
FORMS = {ARABIC: ("", "ال", "و", "وال", "بال"), TURKISH: ("", "lar", "larda", "lari", "dan")}
NEW = {ARABIC: "فال", TURKISH: "lardan"}
WORDS = (*ENGLISH, *ARABIC_STEMS, *TURKISH_STEMS, "2")


def features() -> WordFeatures:
    return WordFeatures(Vocabulary(WORDS), fold_marks=True, letter_buckets=3_000)


def model_of_rows(folder):
    rows = len(WORDS) + 3_000
    table = np.random.default_rng(0).standard_normal((rows, 16)).astype(np.float32)
    made = dan_model(layers=[], width=16, buckets=0, residual=False, head=(16,))
    made = replace(made, features=features(), tensors={**made.tensors, TABLE: table})
    write_model(folder, made)
    return folder


def form(language, stem, ending):
    return ending + stem if language == ARABIC else stem + ending


def translations(language) -> Translations:
    pairs = [
        (word, form(language, stem, ending))
        for word, stem in zip(ENGLISH, STEMS[language], strict=True)
        for ending in FORMS[language]
    ]
    english, others = zip(*pairs, strict=True)
    weights = np.full(len(pairs), 1 / len(pairs))
    return Translations(english, others, weights, frozenset(others))


def test_the_gradient_is_that_of_the_loss():
    generator = np.random.default_rng(0)
    sums, targets = generator.standard_normal((2, 6, 4))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    targets[5] = targets[2]  # whose pairs are not opposed
    _, gradient = loss_gradient(sums, targets, 3.0)
    for row, column in ((0, 0), (2, 1), (5, 3)):
        step = np.zeros_like(sums)
        step[row, column] = 1e-4
        high, low = (loss_gradient(sums + sign * step, targets, 3.0)[0] for sign in (1, -1))
        assert gradient[row, column] == pytest.approx((high - low) / 2e-4, abs=1e-5)


def test_a_form_that_was_not_met_finds_its_english():
    pairs = translations(ARABIC)
    words = pairs.words | {NEW[ARABIC] + stem for stem in ARABIC_STEMS}
    rows = LanguageRows(features(), words, 3_000, 5, seed=0)
    targets = np.eye(5, dtype=np.float32)[[ENGLISH.index(word) for word in pairs.english]]
    others = np.zeros((features().rows, 5), np.float32)
    losses = fit(rows, pairs, targets, others, steps=60, rate=0.1, seed=0)
    assert losses[-1] < 0.1 * losses[0]
    counts, rest = rows.of_texts([NEW[ARABIC] + stem for stem in ARABIC_STEMS])
    assert (counts @ rows.rows).argmax(axis=1).tolist() == [0, 1, 2, 3, 4]
    assert rest == [""] * 5


def test_words_of_other_languages_are_left_to_the_model():
    rows = LanguageRows(features(), translations(ARABIC).words, 3_000, 5, seed=0)
    counts, rest = rows.of_texts(["كتاب 2 book!", "book"])
    assert rest == ["2 book !", "book"]
    assert counts[0].sum() > 1
    assert counts[1].sum() == 0


def test_rows_can_begin_from_those_of_the_model():
    known = np.random.default_rng(1).standard_normal((features().rows, 5)).astype(np.float32)
    words = frozenset(TURKISH_STEMS)
    rows = LanguageRows(features(), words, 3_000, 5, known=known, seed=0)
    np.testing.assert_array_equal(rows.rows[: len(rows.known)], known[rows.known])
    assert SPANISH.from_known


@pytest.mark.filterwarnings("ignore::rejoinder.errors.ForeignTextWarning")
@pytest.mark.parametrize("language", [ARABIC, TURKISH])
def test_only_the_rows_of_the_language_and_letters_change(language, tmp_path):
    folder = model_of_rows(tmp_path / "model")
    before, pairs = read_model(folder), translations(language)
    targets = SentenceEncoder(folder).encode(pairs.english)
    made, _ = with_language(before, language, pairs, targets, steps=60, seed=0)
    write_model(tmp_path / "out", made)
    after = read_model(tmp_path / "out")
    others = [at for at, word in enumerate(WORDS) if word not in pairs.words]
    np.testing.assert_array_equal(
        after.tensors[TABLE][others], before.tensors[TABLE][others].astype(np.float16)
    )
    buckets = language.buckets if language == ARABIC else 0
    assert after.features == replace(before.features, arabic_letter_buckets=buckets)
    encoder = SentenceEncoder(tmp_path / "out")
    new = [form(language, stem, NEW[language]) for stem in STEMS[language]]
    for texts in (STEMS[language], new):  # new forms are read by their letters
        assert encoder.similarity(ENGLISH, texts).argmax(axis=0).tolist() == [0, 1, 2, 3, 4]


def test_a_model_without_letters_is_refused(tmp_path, monkeypatch, capsys):
    write_model(tmp_path / "model", dan_model())
    monkeypatch.setattr(sys, "argv", ["language_rows.py", str(tmp_path / "model"), "data", "out"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "does not read unknown words by their letters" in capsys.readouterr().err


def test_translations_are_those_of_the_recipe_in_a_language(tmp_path, monkeypatch):
    config = load_config("rejoinder-multi")
    [turkish] = [task for task in config.tasks if task.label == "turkish"]
    [words] = [task for task in config.tasks if task.label == "words"]
    file = turkish.data[0].model_copy(update={"path": "pairs.jsonl"})
    mixed = words.data[0].model_copy(update={"path": "words.jsonl"})
    tasks = (
        turkish.model_copy(update={"data": (file,)}),
        words.model_copy(update={"data": (mixed,)}),
    )
    monkeypatch.setattr(
        language_rows, "load_config", lambda _name: config.model_copy(update={"tasks": tasks})
    )
    pairs = [
        ("a book", "bir kitap", "tr"),
        ("a book", "un libro", "es"),
        ("a house", "bir ev", "tr"),
        ("a book", "bir kitap", "tr"),
    ]
    of_words = [("river", "nehir", "tr"), ("book", "كتاب", "ar")]
    for name, rows in (("pairs", pairs), ("words", of_words)):
        lines = [
            json.dumps({"sentence1": one, "sentence2": other, "lang": f"en-{language}"})
            for one, other, language in rows
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    corpus = Corpus(tmp_path, features())
    found = corpus.translations("tr")
    assert (found.english, found.others) == (("a book", "a house"), ("bir kitap", "bir ev"))
    assert found.words == {"bir", "kitap", "ev"}
    assert found.weights.tolist() == [0.5, 0.5]
    assert corpus.translations("ar").others == ("كتاب",)  # told by its script
