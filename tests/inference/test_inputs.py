"""The arguments of `SentenceTransformer.encode`, with real embeddings of the default model."""

from typing import get_args, get_overloads, get_type_hints

import numpy as np
import pytest
import torch

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.inputs import PRECISIONS, quantized
from rejoinder.protocols import Embeddings

TEXTS = ["How old are you?", "", "What is your age?", "Where do you live?"]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder(threads=1)


def test_tensors_hold_the_same_numbers_as_arrays(encoder):
    array = encoder.encode(TEXTS)
    tensor = encoder.encode(TEXTS, convert_to_tensor=True)
    rows = encoder.encode(TEXTS, convert_to_numpy=False)
    assert isinstance(tensor, torch.Tensor)
    assert (tensor.numpy() == array).all()
    assert isinstance(rows, list)
    assert (torch.stack(rows) == tensor).all()
    assert encoder.encode("Hi.", convert_to_tensor=True).shape == (encoder.dim,)
    assert encoder.encode("Hi.", convert_to_numpy=False).shape == (encoder.dim,)
    assert (encoder.encode(TEXTS, convert_to_numpy=True, convert_to_tensor=False) == array).all()


def test_both_names_of_normalize_mean_the_same(encoder):
    short, long = (
        encoder.encode(TEXTS, normalize=False),
        encoder.encode(TEXTS, normalize_embeddings=False),
    )
    assert (short == long).all()
    lengths = np.linalg.norm(encoder.encode(TEXTS, normalize_embeddings=True), axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 1, 1], atol=1e-6)
    assert abs(np.linalg.norm(short[0]) - 1) > 0.01
    with pytest.raises(InputError, match="normalize and normalize_embeddings mean the same"):
        encoder.encode(TEXTS, normalize=True, normalize_embeddings=True)


def test_fewer_dimensions_are_the_first_ones_scaled_to_length_1(encoder):
    whole, cut = encoder.encode(TEXTS), encoder.encode(TEXTS, truncate_dim=64)
    assert cut.shape == (4, 64)
    np.testing.assert_allclose(np.linalg.norm(cut, axis=1), [1, 0, 1, 1], atol=1e-6)
    np.testing.assert_allclose(cut * np.linalg.norm(whole[:, :64], axis=1)[:, None], whole[:, :64],
                               atol=1e-6)  # fmt: skip
    raw = encoder.encode(TEXTS, truncate_dim=64, normalize=False)
    assert (raw == encoder.encode(TEXTS, normalize=False)[:, :64]).all()
    assert encoder.encode("Hi.", truncate_dim=8).shape == (8,)
    for wrong in (0, encoder.dim + 1, 2.0, True):
        with pytest.raises(InputError, match="truncate_dim must be"):
            encoder.encode(TEXTS, truncate_dim=wrong)


def test_signs_are_packed_eight_in_a_byte(encoder):
    signs = np.unpackbits(encoder.encode(TEXTS, precision="ubinary"), axis=1)
    assert (signs == (encoder.encode(TEXTS) > 0)).all()
    binary = encoder.encode(TEXTS, precision="binary")
    assert binary.dtype == np.int8
    assert (binary.astype(int) + 128 == encoder.encode(TEXTS, precision="ubinary")).all()
    assert encoder.encode("Hi.", precision="binary").shape == (encoder.dim // 8,)


@pytest.mark.parametrize("precision", ["int8", "uint8"])
def test_whole_numbers_are_steps_between_the_least_and_the_largest(encoder, precision):
    rows, whole = encoder.encode(TEXTS), encoder.encode(TEXTS, precision=precision)
    assert whole.dtype == np.dtype(precision)
    steps = (rows.max(axis=0) - rows.min(axis=0)) / 255
    back = rows.min(axis=0) + (whole.astype(int) - np.iinfo(precision).min) * steps
    assert (np.abs(back - rows) <= steps * 1.01).all()
    for few in ("Hi.", ["Hi."], []):
        with pytest.raises(InputError, match="needs at least two"):
            encoder.encode(few, precision=precision)


def test_equal_values_in_a_dimension_do_not_divide_by_zero():
    assert quantized(np.ones((2, 3), np.float32), "uint8").tolist() == [[0] * 3] * 2
    assert {str(quantized(np.eye(8, dtype=np.float32), name).dtype) for name in PRECISIONS} == {
        "float32", "int8", "uint8",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"prompt": "query: "}, "prompt is 'query: '; the models were trained without prompts"),
        ({"prompt_name": "query"}, "prompt_name is 'query'; the models were trained without"),
        ({"device": "cuda"}, "device is 'cuda'; embeddings are computed on the CPU"),
        ({"output_value": "token_embeddings"}, "only sentence embeddings can be computed"),
        ({"pool": {"processes": 2}}, "threads=N"),
        ({"chunk_size": 10}, "batch_size sets"),
        ({"precision": "float16"}, "precision must be one of float32, int8.*got 'float16'"),
        ({"convert_to_tensor": "yes"}, "convert_to_tensor must be True or False"),
        ({"truncate_dims": 2}, "no argument 'truncate_dims'; did you mean 'truncate_dim'"),
        ({"normalise": True}, "no argument 'normalise'; did you mean 'normalize'"),
    ],
)
def test_what_can_not_be_done_is_refused_by_name(encoder, arguments, said):
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        with pytest.raises(InputError, match=said):
            encode(TEXTS, **arguments)


def test_arguments_that_ask_for_nothing_else_are_let_through(encoder):
    plain = encoder.encode(
        TEXTS, prompt=None, prompt_name=None, device="cpu", output_value="sentence_embedding",
        pool=None, chunk_size=None, truncate_dim=None, precision="float32",
    )  # fmt: skip
    assert (plain == encoder.encode(TEXTS)).all()


def test_queries_and_documents_are_encoded_as_sentences(encoder):
    for encode in (encoder.encode_query, encoder.encode_document):
        assert (encode(TEXTS, batch_size=2) == encoder.encode(TEXTS)).all()
    assert encoder.get_sentence_embedding_dimension() == encoder.dim == 512
    assert encoder.get_embedding_dimension() == encoder.dim


def test_tensors_are_compared_like_arrays(encoder):
    rows = encoder.encode(TEXTS)
    for tensor in (torch.from_numpy(rows), torch.from_numpy(rows).requires_grad_()):
        assert (encoder.similarity(tensor, tensor) == encoder.similarity(rows, rows)).all()
        assert encoder.search(tensor, TEXTS, 1) == encoder.search(rows, TEXTS, 1)
    low = encoder.similarity_pairwise(torch.from_numpy(rows).bfloat16(), rows)
    np.testing.assert_allclose(low, [1, 0, 1, 1], atol=0.01)
    with pytest.raises(InputError, match=r"embeddings have shape \(2, 3\)"):
        encoder.similarity(torch.ones(2, 3), rows)


def test_the_progress_bar_may_be_left_to_the_encoder(encoder):
    assert (encoder.encode(TEXTS, show_progress_bar=None) == encoder.encode(TEXTS)).all()


def test_type_checkers_know_what_truncated_embeddings_are():
    known, _ = get_overloads(SentenceEncoder.encode)
    assert known.__annotations__["return"] == Embeddings
    [arguments] = get_args(known.__annotations__["arguments"])
    assert {"truncate_dim", "normalize_embeddings", "batch_size"} <= {*get_type_hints(arguments)}


def test_models_are_loaded_and_saved_by_its_names_too(encoder, tmp_path):
    encoder.save_pretrained(tmp_path / "model")
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model", threads=1)
    assert (loaded.encode(TEXTS) == encoder.encode(TEXTS)).all()
