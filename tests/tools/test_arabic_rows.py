"""Rows of Arabic words fitted to the English of a small model."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import arabic_rows
from arabic_rows import TABLE, ArabicRows, fit, loss_gradient, main, read_translations
from rejoinder import SentenceEncoder
from rejoinder.encoders.layers import quantize_rows, scales_name
from rejoinder.models.folder import read_model, write_model
from rejoinder.text.features import WordFeatures
from rejoinder.text.vocabulary import Vocabulary
from rejoinder.training.config.loading import load_config
from tiny_models import dan_model

ENGLISH = ("book", "house", "school", "river", "teacher")
STEMS = ("كتاب", "بيت", "مدرسه", "نهر", "معلم")
BEFORE = ("", "ال", "و", "وال", "بال")
WORDS = (*ENGLISH, *STEMS, "2")
BUCKETS = 3_000


def features() -> WordFeatures:
    return WordFeatures(Vocabulary(WORDS), fold_marks=True, letter_buckets=7)


@pytest.fixture
def model(tmp_path):
    table = np.random.default_rng(0).standard_normal((len(WORDS) + 7, 16)).astype(np.float32)
    made = dan_model(layers=[], width=16, buckets=0, residual=False, head=(16,))
    rows, scales = quantize_rows(table)
    tensors = {**made.tensors, TABLE: rows, scales_name(TABLE): scales}
    write_model(tmp_path / "model", replace(made, features=features(), tensors=tensors))
    return tmp_path / "model"


def pairs() -> list[tuple[str, str]]:
    known = zip(ENGLISH, STEMS, strict=True)
    return [(word, before + stem) for word, stem in known for before in BEFORE]


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
    rows = ArabicRows(features(), BUCKETS, 5, seed=0)
    english, arabic = zip(*pairs(), strict=True)
    targets = np.eye(5, dtype=np.float32)[[ENGLISH.index(word) for word in english]]
    others = np.zeros((features().rows, 5), np.float32)
    losses = fit(rows, arabic, targets, others, steps=60, scale=10.0, seed=0)
    assert losses[-1] < 0.1 * losses[0]
    counts, rest = rows.of_texts([f"فال{stem}" for stem in STEMS])
    assert (counts @ rows.rows).argmax(axis=1).tolist() == [0, 1, 2, 3, 4]
    assert rest == [""] * 5


def test_words_of_other_alphabets_are_left_to_the_model():
    counts, rest = ArabicRows(features(), BUCKETS, 5, seed=0).of_texts(["كتاب 2 book!", "book"])
    assert rest == ["2 book !", "book"]
    assert counts[0].sum() > 1
    assert counts[1].sum() == 0


@pytest.mark.filterwarnings("ignore::rejoinder.errors.ForeignTextWarning")
def test_only_the_fitted_rows_of_a_model_change(model, tmp_path, monkeypatch):
    monkeypatch.setattr(
        arabic_rows, "read_translations", lambda _data: [*zip(*pairs(), strict=True)]
    )
    given = ["arabic_rows.py", str(model), "data", str(tmp_path / "out"), "--steps=60"]
    monkeypatch.setattr(sys, "argv", [*given, f"--buckets={BUCKETS}"])
    main()
    before, after = read_model(model), read_model(tmp_path / "out")
    kept = [at for at in range(len(WORDS) + 7) if not 5 <= at < 10]
    for name in (TABLE, scales_name(TABLE)):
        np.testing.assert_array_equal(after.tensors[name][kept], before.tensors[name][kept])
    assert after.features == replace(before.features, arabic_letter_buckets=BUCKETS)
    assert after.training["arabic_rows"]["pairs"] == len(pairs())
    encoder = SentenceEncoder(tmp_path / "out")
    known = encoder.similarity(ENGLISH, STEMS)
    unknown = encoder.similarity(ENGLISH, [f"فال{stem}" for stem in STEMS])
    assert known.argmax(axis=0).tolist() == unknown.argmax(axis=0).tolist() == [0, 1, 2, 3, 4]


def test_a_model_without_letters_is_refused(tmp_path, monkeypatch, capsys):
    write_model(tmp_path / "model", dan_model())
    monkeypatch.setattr(sys, "argv", ["arabic_rows.py", str(tmp_path / "model"), "data", "out"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "does not read unknown words by their letters" in capsys.readouterr().err


def test_pairs_of_arabic_and_english_are_read_from_the_files_of_the_recipe(tmp_path, monkeypatch):
    config = load_config("rejoinder-multi")
    words = next(
        task for task in config.tasks if task.objective == "paraphrase" and task.interleave
    )
    task = words.model_copy(update={"data": words.data[:1]})
    monkeypatch.setattr(
        arabic_rows, "load_config", lambda _name: config.model_copy(update={"tasks": (task,)})
    )
    path = tmp_path / task.data[0].path
    path.parent.mkdir(parents=True)
    rows = [("a book", "كتاب"), ("a book", "libro"), ("a house", "بيت"), ("a book", "كتاب")]
    lines = [json.dumps({"sentence1": one, "sentence2": other}) for one, other in rows]
    path.write_text("\n".join(lines), "utf-8")
    assert read_translations(tmp_path) == (["a book", "a house"], ["كتاب", "بيت"])
