"""Exported folders in the real sentence-transformers."""

from dataclasses import replace

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import quantize_embeddings

from rejoinder import Index, SentenceEncoder, evaluate, load_encoder
from rejoinder.errors import InputError
from rejoinder.interfaces.sentence_transformers import RejoinderModule
from rejoinder.interfaces.targets import export_to
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model, transformer_model


@pytest.fixture(scope="module")
def own(linear, tmp_path_factory):
    """Word vectors in modules of sentence-transformers alone."""
    out = tmp_path_factory.mktemp("own") / "model"
    export_to(linear, out, "sentence-transformers")
    return SentenceTransformer(str(out))


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The default model, which needs this package."""
    return export_to(
        "rejoinder-base", tmp_path_factory.mktemp("copied") / "model", "sentence-transformers"
    ).folder


def test_word_vectors_are_the_same_in_its_own_modules(own, linear, texts):
    assert [type(module).__module__.split(".")[0] for module in own] == [
        "sentence_transformers"
    ] * 2
    expected = SentenceEncoder.load(linear).encode(texts)
    assert np.count_nonzero(expected.any(axis=1)) > 900
    for encode in (own.encode, own.encode_query, own.encode_document):
        np.testing.assert_allclose(encode(texts), expected, atol=1e-5)
    assert own.get_embedding_dimension() == 512
    assert own.similarity_fn_name == "cosine"
    assert own.encode(["zzzqx", ""]).tolist() == np.zeros((2, 512)).tolist()


def test_a_model_of_word_vectors_is_evaluated(own, linear, texts, tmp_path):
    own.save(str(tmp_path / "saved"))
    pairs = [(text, texts[row + 1], row % 6) for row, text in enumerate(texts[:200])]
    ours, theirs = (evaluate(name, data=pairs)[0] for name in (linear, f"st:{tmp_path / 'saved'}"))
    assert theirs.encoder["max_tokens"] is None
    assert theirs.scores["pearson"] == pytest.approx(ours.scores["pearson"], abs=1e-4)


def test_any_model_runs_in_it_by_this_package(copied, texts):
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(copied))
    model = SentenceTransformer(str(copied), trust_remote_code=True)
    expected = SentenceEncoder().encode(texts)
    for encode in (model.encode, model.encode_query, model.encode_document):
        np.testing.assert_allclose(encode(texts), expected, atol=1e-6)
    assert model.get_embedding_dimension() == 512
    assert model.encode("Hi.", truncate_dim=64).shape == (64,)
    with pytest.raises(InputError, match="trained without prompts"):
        model.encode("Hi.", prompt="query: ")


@pytest.mark.parametrize("make", [dan_model, transformer_model, bilstm_model])
def test_every_kind_of_encoder_is_copied(make, tmp_path):
    write_model(tmp_path / "model", replace(make(), name="tiny"))
    export_to(tmp_path / "model", tmp_path / "out", "sentence-transformers")
    model = SentenceTransformer(str(tmp_path / "out"), trust_remote_code=True)
    texts = ["how old are you?", "", "what is your age"]
    expected = SentenceEncoder.load(tmp_path / "model").encode(texts)
    np.testing.assert_allclose(model.encode(texts), expected, atol=1e-5)


def test_the_module_needs_no_folder_and_no_trust_and_is_saved(tmp_path):
    model = SentenceTransformer(modules=[RejoinderModule("rejoinder-small")])
    expected = SentenceEncoder.load("rejoinder-small").encode(["How old are you?"])
    assert (model.encode(["How old are you?"]) == expected).all()
    model.save(str(tmp_path / "saved"))
    again = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True)
    assert (again.encode(["How old are you?"]) == expected).all()


def test_the_module_takes_a_number_of_threads_for_a_model_that_it_loads():
    module = RejoinderModule("rejoinder-small", threads=1)
    assert module.encoder._threads == 1
    with pytest.raises(InputError, match="this encoder has its own"):
        RejoinderModule(module.encoder, threads=1)


@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
@pytest.mark.parametrize("dim", [None, 64])
def test_encode_gives_what_it_gives(own, linear, texts, precision, dim):
    """The same call of both, with the arguments that both have."""
    ours = SentenceEncoder.load(linear).encode(texts, truncate_dim=dim, normalize_embeddings=True)
    theirs = own.encode(texts, truncate_dim=dim, normalize_embeddings=True)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    # a bit or a step may differ where rounding does, so both quantise the same embeddings
    from rejoinder.inference.inputs import quantized

    expected = quantize_embeddings(theirs, precision=precision)
    got = quantized(theirs, precision)
    assert got.dtype == expected.dtype
    assert (got == expected).all()


def test_tensors_are_like_its_own(own, linear):
    encoder = SentenceEncoder.load(linear)
    for arguments in ({"convert_to_tensor": True}, {"convert_to_numpy": False}):
        for texts in ("Hi.", ["Hi.", "How are you?"]):
            ours, theirs = (model.encode(texts, **arguments) for model in (encoder, own))
            assert type(ours) is type(theirs)
            assert [row.shape for row in ours] == [row.shape for row in theirs]


def test_a_model_of_the_library_makes_an_index(linear, tmp_path):
    export_to(linear, tmp_path / "model", "sentence-transformers")
    encoder = load_encoder(f"st:{tmp_path / 'model'}")
    texts = ["How old are you?", "I like pizza."]
    Index.create(tmp_path / "index", texts, encoder).add(["Where do you live?"])
    index = Index.open(tmp_path / "index", load_encoder(f"st:{tmp_path / 'model'}"))
    [[hit]] = index.search("I like pizza.", 1)
    assert (hit.text, hit.score) == ("I like pizza.", pytest.approx(1, abs=1e-5))
    with pytest.raises(InputError, match=r"not with rejoinder-base"):
        Index.open(tmp_path / "index", "rejoinder-base")
