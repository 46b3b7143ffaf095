"""Texts of more tokens than a model reads: refused, cut, split; and which texts these are."""

from dataclasses import replace

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.folder import read_model, write_model
from tiny_models import WORDS, bilstm_model, dan_model, transformer_model

MOST = 40
"""`max_tokens` of the tiny models."""


def words(count, start=0):
    """A text of `count` tokens for a model of words, of as many or more for one of subwords."""
    known = [word for word in WORDS if word.isascii() and word.isalpha()]
    return " ".join(known[(start + index) % len(known)] for index in range(count))


LONG = [words(3), words(95, 1), "", words(41, 2), "cat", words(600, 3)]


@pytest.fixture(scope="module", params=[transformer_model, bilstm_model])
def encoder(request):
    return SentenceEncoder(request.param())


def token_count(encoder, text):
    return int(encoder._model.features.whole([text]).lengths[0])


def test_the_long_texts_are_told(encoder):
    counts = [token_count(encoder, text) for text in LONG]
    assert encoder.too_long(LONG).tolist() == [count > MOST for count in counts]
    assert encoder.too_long(LONG).tolist() == [False, True, False, True, False, True]
    assert encoder.too_long([]).shape == (0,)
    assert encoder.describe()["max_tokens"] == MOST


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
def test_a_text_that_is_too_long_is_refused_by_its_index(encoder, method):
    run = getattr(encoder, method)
    number = token_count(encoder, LONG[1])
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
def test_split_changes_long_texts_alone(encoder, normalize):
    split = encoder.encode(LONG, on_too_long="split", normalize=normalize)
    cut = encoder.encode(LONG, normalize=normalize)
    long = encoder.too_long(LONG)
    np.testing.assert_allclose(split[~long], cut[~long], atol=1e-6)
    assert (np.abs(split[long] - cut[long]).max(axis=1) > 1e-4).all()
    np.testing.assert_allclose(np.linalg.norm(split[long], axis=1), 1, atol=1e-6)
    assert not split[2].any()  # the empty text


def test_split_does_not_depend_on_batches(encoder):
    whole = encoder.encode(LONG, on_too_long="split")
    np.testing.assert_allclose(
        encoder.encode(LONG, on_too_long="split", batch_size=1), whole, atol=1e-5
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
