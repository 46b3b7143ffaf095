"""The DAN against plain loops; what holds for equal texts, ties, odd input and huge weights."""

import copy
import math
import pickle
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.api.evaluation import load_encoder
from rejoinder.encoders import BIGRAM_ROWS
from rejoinder.encoders.layers import dequantized
from rejoinder.errors import InputError, ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.neighbours import NotFiniteError, nearest_rows
from rejoinder.inference.outputs import runtime_of
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.find import find_model
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.protocols import Describes, EncodesResponses
from tiny_models import WORDS, bilstm_model, dan_model, transformer_model

AWKWARD = [
    "",
    " \t\n",
    "hello " * 16_667,
    "😀👩‍👩‍👧😀",
    "مرحبا שלום",
    "\ud83d hello \udc00",
    "hello\x00you\x00",
    "ﬁ İ ẞ très",
    "unheardof words",
]
SENTENCES = ["how old are you ?", "my name is tom", "where do you live"]
texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.lists(st.sampled_from([*WORDS, "zebra"]), max_size=9).map(" ".join),
    st.text(st.characters(), max_size=30),
)


def int8_model(model=None):
    return smaller(model or dan_model(), ExportOptions(dtype="int8"))


def int8_bilstm():
    return int8_model(bilstm_model())


@pytest.fixture(scope="module", params=[dan_model, int8_model])
def encoder(request):
    return SentenceEncoder(request.param())


@pytest.fixture(scope="module", params=[transformer_model, bilstm_model, int8_bilstm])
def through_torch(request):
    return SentenceEncoder(request.param())


def slow_dan(model, text):
    """One sentence, word by word, in Python's own floats."""
    rows = [int(row) for row in model.features([text])[0]]
    if BIGRAM_ROWS in model.tensors:
        words, buckets = model.features.words, model.tensors[BIGRAM_ROWS]
        rows = [row if row < words else int(buckets[row - words]) for row in rows]
        rows = [row for row in rows if row >= 0]
    if not rows:
        return np.zeros(model.dim)
    table = model.tensors["encoder.table.weight"].astype(float)
    power = {"sqrtn": 0.5, "sum": 0.0, "mean": 1.0}[model.encoder["combiner"]]
    x = sum(table[row] for row in rows) / len(rows) ** power
    y = slow_layers(model, "encoder.dnn", model.encoder, x)
    return y / np.linalg.norm(y)


def slow_layers(model, name, config, x):
    shape = {
        "none": lambda v: v,
        "tanh": math.tanh,
        "relu": lambda v: max(v, 0.0),
        "gelu": lambda v: 0.5 * v * (1 + math.erf(v / 2**0.5)),
    }[config["activation"]]
    y = x
    for number in range(len(config["layers"])):
        weight, bias = (
            model.tensors[f"{name}.layers.{number}.{part}"] for part in ("weight", "bias")
        )
        y = weight.astype(float) @ (np.vectorize(shape)(y) if number else y) + bias
    if config["residual"] and config["layers"]:
        skip = model.tensors.get(f"{name}.skip.weight")
        y = y + (x if skip is None else skip.astype(float) @ x)
    return y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"buckets": 0, "combiner": "mean", "activation": "relu"},
        {"combiner": "sum", "activation": "gelu", "residual": False, "head_residual": False},
        {"layers": (), "head": (), "activation": "none"},
        {"unknown_buckets": 3},
        {"buckets": 0, "unknown_buckets": 3},
        {"layers": (7, 6), "head": (6,), "dtype": np.float16},
    ],
)
def test_embeddings_are_those_of_plain_loops(options):
    model = dan_model(**options)
    encoder = SentenceEncoder(model)
    given_texts = ["How old are you?", "my name is Tom", "zebra", "you you you are are", "", "cat"]
    embeddings, responses = encoder.encode(given_texts), encoder.encode_response(given_texts)
    for text, u, v in zip(given_texts, embeddings, responses, strict=True):
        expected = slow_dan(model, text)
        np.testing.assert_allclose(u, expected, atol=2e-6)
        if not expected.any():
            assert not v.any()
            continue
        answer = slow_layers(model, "heads.responses", model.heads["responses"], expected)
        np.testing.assert_allclose(v, answer / np.linalg.norm(answer), atol=2e-6)


@pytest.mark.parametrize(
    "model",
    [
        dan_model(),
        dan_model(buckets=0, unknown_buckets=3, layers=(), head=()),
        bilstm_model(),
        bilstm_model(dim=0),
    ],
)
def test_int8_rows_give_the_embeddings_of_the_floats_that_they_stand_for(model):
    model = int8_model(model)
    found, plain = (
        SentenceEncoder(each)
        for each in (model, replace(model, tensors=dequantized(model.tensors)))
    )
    given_texts = [*SENTENCES, "hello hello cat", "zebra", ""]
    for normalize in (True, False):
        np.testing.assert_allclose(
            found.encode(given_texts, normalize=normalize),
            plain.encode(given_texts, normalize=normalize),
            atol=1e-6,
        )


def test_a_table_of_int8_stays_int8_in_memory():
    model = int8_model()
    shape = model.tensors["encoder.table.weight"].shape
    runtime = runtime_of(model)(model, 1)
    held = [value for part in (runtime, runtime.sums) for value in vars(part).values()]
    tables = [value for value in held if np.shape(value) == shape]
    assert [table.dtype for table in tables] == [np.int8]


@settings(max_examples=60)
@given(st.lists(texts, min_size=1, max_size=8), st.integers(1, 9), st.randoms())
def test_neither_order_nor_batch_size_changes_a_result(encoder, given_texts, size, random):
    whole = encoder.encode(given_texts)
    assert whole.shape == (len(given_texts), 5)
    assert whole.dtype == np.float32
    places = random.sample(range(len(given_texts)), len(given_texts))
    mixed = encoder.encode([given_texts[place] for place in places], batch_size=size)
    # products of matrices round rows by their batch
    np.testing.assert_allclose(mixed, whole[places], rtol=0, atol=1e-6)
    alone = encoder.encode_response(given_texts[0])
    responses = encoder.encode_response(given_texts)
    np.testing.assert_allclose(alone, responses[0], rtol=0, atol=1e-6)
    lengths = np.linalg.norm(whole, axis=1)
    known = lengths > 0
    np.testing.assert_allclose(lengths[known], 1, atol=1e-6)
    assert (encoder.unknown(given_texts) >= ~known).all()


def test_rows_as_the_last_layer_gives_them(encoder):
    given_texts = ["How old are you?", "zebra", "cat"]
    for encode in (encoder.encode, encoder.encode_response):
        raw = encode(given_texts, normalize=False)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        assert abs(lengths[0, 0] - 1) > 1e-3
        assert lengths[1, 0] == 0
        np.testing.assert_allclose(raw / np.maximum(lengths, 1e-9), encode(given_texts), atol=1e-6)


def test_what_runs_through_torch_can_leave_lengths_too(through_torch):
    given_texts = ["How old are you?", "", "cat"]
    raw = through_torch.encode(given_texts, normalize=False)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    unit = through_torch.encode(given_texts)
    np.testing.assert_allclose(raw / np.maximum(lengths, 1e-9), unit, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 0, 1], atol=1e-6)


@settings(max_examples=15)
@given(st.lists(texts, min_size=1, max_size=6), st.integers(1, 7), st.randoms())
def test_neither_changes_a_result_through_torch(through_torch, given_texts, size, random):
    whole = through_torch.encode(given_texts)
    places = random.sample(range(len(given_texts)), len(given_texts))
    mixed = through_torch.encode([given_texts[place] for place in places], batch_size=size)
    np.testing.assert_allclose(mixed, whole[places], atol=1e-5)
    alone = through_torch.encode_response(given_texts[0])
    np.testing.assert_allclose(alone, through_torch.encode_response(given_texts)[0], atol=1e-5)
    known = whole.any(axis=1)
    assert (through_torch.unknown(given_texts) >= ~known).all()
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), known, atol=1e-6)


def test_misuse_is_named(encoder):
    with pytest.raises(InputError, match="batch_size must be 1 or more; got 0"):
        encoder.encode(["fine"], batch_size=0)
    with pytest.raises(InputError, match="'cosine' or 'angular'; got 'euclid'"):
        encoder.similarity("a", "b", measure="euclid")
    with pytest.raises(InputError, match=r"shape \(1, 3\); \(N, 5\) is needed"):
        encoder.similarity(np.zeros((1, 3), np.float32), "b")
    with pytest.raises(InputError, match="top_k must be 1 or more; got 0"):
        encoder.search("how", ["old"], top_k=0)


def test_all_kinds_of_lists_are_taken(encoder):
    expected = encoder.encode(SENTENCES)
    halves = [SENTENCES[:1], SENTENCES[1:]]
    forms = (
        tuple(SENTENCES), np.array(SENTENCES), iter(SENTENCES),
        pl.Series(SENTENCES), pl.Series(SENTENCES, dtype=pl.Categorical), pd.Series(SENTENCES),
        pa.array(SENTENCES), pa.array(SENTENCES).dictionary_encode(), pa.chunked_array(halves),
    )  # fmt: skip
    for sentences in forms:
        np.testing.assert_array_equal(encoder.encode(sentences), expected)
    assert encoder.encode([]).shape == (0, 5)
    with pytest.raises(InputError, match="sentence 1 is a NoneType"):
        encoder.encode(pa.array(["Hi.", None]))
    shown = encoder.encode(SENTENCES, batch_size=1, show_progress_bar=True)
    np.testing.assert_allclose(shown, expected, atol=1e-6)


def test_similarity_is_the_cosine_and_its_angle(encoder):
    embeddings = encoder.encode(SENTENCES)
    cosine = encoder.similarity(SENTENCES, embeddings[1:])
    np.testing.assert_allclose(cosine, embeddings @ embeddings[1:].T, atol=1e-6)
    angular = encoder.similarity(SENTENCES, SENTENCES[1:], measure="angular")
    np.testing.assert_allclose(np.cos(angular), cosine, atol=1e-6)
    assert (angular <= 0).all()
    assert (angular.dtype, angular.shape) == (np.float32, (3, 2))


@pytest.mark.parametrize("measure", ["cosine", "angular"])
def test_pairwise_similarity_is_the_diagonal_of_all_similarities(encoder, measure):
    a, b = [*SENTENCES, "zebra", "cat"], [*SENTENCES[::-1], "hello", "cat"]
    every = encoder.similarity(a, b, measure)
    pairs = encoder.similarity_pairwise(a, encoder.encode(b), measure)
    assert (pairs.dtype, pairs.shape) == (np.float32, (5,))
    np.testing.assert_allclose(pairs, np.diag(every), atol=1e-6 if measure == "cosine" else 1e-3)
    assert encoder.similarity_pairwise([], []).shape == (0,)
    assert encoder.similarity_pairwise("cat", "dog").shape == (1,)
    with pytest.raises(InputError, match="2 rows and b 1"):
        encoder.similarity_pairwise(["cat", "dog"], "cat")
    with pytest.raises(InputError, match="'cosine' or 'angular'"):
        encoder.similarity_pairwise("cat", "dog", "dot")


def test_rank_gives_as_many_hits_as_asked_for(encoder):
    every = encoder.rank(SENTENCES[0], SENTENCES)
    assert encoder.rank(SENTENCES[0], SENTENCES, top_k=2) == every[:2]
    assert encoder.rank(SENTENCES[0], SENTENCES, 9) == every
    for top_k in (0, 1.5, True):
        with pytest.raises(InputError, match=r"^top_k must be "):
            encoder.rank("hello", ["you"], top_k=top_k)


def test_rank_uses_the_response_side_and_search_does_not(encoder):
    ranked = encoder.rank(SENTENCES[0], SENTENCES)
    scores = encoder.encode_response(SENTENCES) @ encoder.encode(SENTENCES[0])
    assert [hit.index for hit in ranked] == np.argsort(-scores, kind="stable").tolist()
    assert [hit.text for hit in ranked] == [SENTENCES[hit.index] for hit in ranked]
    [[best]] = encoder.search(SENTENCES[1], SENTENCES, top_k=1)
    assert (best.index, best.text) == (1, SENTENCES[1])
    assert best.score == pytest.approx(1, abs=1e-6)
    [hits] = encoder.search(encoder.encode(SENTENCES[1]), encoder.encode(SENTENCES), top_k=9)
    assert (hits[0].index, hits[0].text, len(hits)) == (1, "", 3)


def test_many_batches_are_put_together_in_order(encoder):
    given_texts = [f"{WORDS[i % 40]} {WORDS[i % 7]}" for i in range(1000)]
    whole = encoder.encode(given_texts)
    np.testing.assert_allclose(encoder.encode(given_texts, batch_size=33), whole, atol=1e-6)


@pytest.mark.parametrize(
    ("sentences", "said"),
    [
        (None, "got None. Pass a string, or a list of strings"),
        (b"hello", r"got a bytes"),
        ({"text": "hello"}, "got a dict. Pass a string"),
        ({"hello"}, "got a set. Pass a string"),
        ([["hello"]], "sentence 0 is a list"),
        (["hello", b"you"], "sentence 1 is a bytes"),
        (lambda: (word for word in ["hello", 5]), "sentence 1 is a int"),
        (5, "got 5. Pass a string"),
        (["hello", None], "sentence 1 is a NoneType"),
        (np.ones(3), "sentence 0 is a float"),
        (pl.Series([1, 2]), "sentence 0 is a int"),
        (pl.Series(["hello", None]), "sentence 1 is a NoneType"),
    ],
)
def test_what_is_no_sentence_is_named(encoder, sentences, said):
    if callable(sentences):  # a generator can be read once
        sentences = sentences()
    with pytest.raises(InputError, match=said):
        encoder.encode(sentences)


def test_an_array_of_one_string_is_one_string(encoder):
    np.testing.assert_array_equal(encoder.encode(np.array("hello")), encoder.encode("hello"))


@pytest.mark.parametrize("normalize", [True, False])
def test_weights_too_large_are_an_error_not_nan(normalize):
    model = dan_model(activation="none")
    for name in ("table.weight", "dnn.layers.0.weight", "dnn.layers.1.weight", "dnn.skip.weight"):
        model.tensors[f"encoder.{name}"] *= np.float32(1e30)
    with pytest.raises(ModelError, match="not finite"):
        SentenceEncoder(model).encode(["hello you"], normalize=normalize)


def test_embeddings_from_elsewhere_are_scaled_and_checked(encoder):
    vectors = encoder.encode(["hello you", "cat", "zebra"])
    cosine = encoder.similarity(vectors, vectors)
    np.testing.assert_allclose(encoder.similarity(3 * vectors, vectors), cosine, atol=1e-6)
    angular = encoder.similarity("hello", "hello", measure="angular")
    assert angular.shape == (1, 1)
    assert -1e-3 < angular[0, 0] <= 0
    broken = vectors.copy()
    broken[1, 2] = np.nan
    for call in (encoder.similarity, encoder.search):
        with pytest.raises(InputError, match=r"row 1 .*not finite"):
            call(["hello"], broken)


def test_equal_texts_tie_and_keep_their_order(encoder):
    corpus = ["hello you", "cat", "dog", "good morning", "my name"] * 41
    for hits in encoder.search(["hello", "cat", "dog", "you are"], corpus, top_k=120):
        for one, two in pairwise(hits):
            assert (one.score, -one.index) > (two.score, -two.index)
        by_text = {}
        for hit in hits:
            assert corpus[hit.index] == hit.text
            by_text.setdefault(hit.text, set()).add(hit.score)
        assert all(len(scores) == 1 for scores in by_text.values())
    ranked = encoder.rank("hello", corpus)
    assert len({(hit.text, hit.score) for hit in ranked}) == 5
    assert [(-hit.score, hit.index) for hit in ranked] == sorted(
        (-hit.score, hit.index) for hit in ranked
    )


@settings(max_examples=40)
@given(
    st.integers(1, 60),
    st.integers(1, 9),
    st.integers(1, 70),
    st.integers(1, 4),
    st.integers(1, 200),
    st.integers(0, 99),
)
def test_searching_in_pieces_changes_no_bit(count, asked, top_k, block, scores_held, seed):
    draw = np.random.default_rng(seed)
    corpus = draw.standard_normal((count, 33)).astype(np.float32)
    corpus /= np.linalg.norm(corpus, axis=1, keepdims=True)
    corpus = corpus[draw.integers(0, count, count)]  # some rows are equal
    queries = corpus[draw.integers(0, count, asked)]
    rows, scores = nearest_rows(queries, corpus, top_k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rejoinder.inference.neighbours._BLOCK_SCORES", scores_held)
        patch.setattr("rejoinder.inference.neighbours._QUERY_BLOCK", block)
        again_rows, again_scores = nearest_rows(queries, corpus, top_k)
    np.testing.assert_array_equal(rows, again_rows)
    np.testing.assert_array_equal(scores, again_scores)
    for query, found in zip(queries, rows, strict=True):
        exact = (corpus * query).sum(axis=1)
        assert found.tolist() == sorted(range(count), key=lambda i: (-exact[i], i))[:top_k]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 6])
def test_a_number_that_is_not_finite_is_refused_in_whatever_block_it_is(monkeypatch, value, place):
    corpus, queries = np.eye(7, dtype=np.float32), np.eye(3, 7, dtype=np.float32)
    for row in nearest_rows(queries, corpus, 2)[0]:
        assert len(row) == 2
    corpus[place, 5] = value
    for held in (3, 6, 1 << 22):
        monkeypatch.setattr("rejoinder.inference.neighbours._BLOCK_SCORES", held)
        for absent in (None, np.arange(7) == 0):
            with pytest.raises(NotFiniteError, match="not finite"):
                nearest_rows(queries, corpus, 2, absent=absent)


def test_an_empty_corpus_has_no_hits(encoder):
    assert encoder.search(["hello", "you"], []) == [[], []]
    assert encoder.search([], ["hello"]) == []
    assert encoder.rank("hello", []) == []


def test_the_input_of_a_ranking_is_one_string(encoder):
    with pytest.raises(InputError, match="got a list"):
        encoder.rank(["hello"], ["you"])


def test_it_is_what_evaluation_asks_for(encoder):
    assert isinstance(encoder, EncodesResponses)
    assert isinstance(encoder, Describes)
    assert encoder.describe()["adaptation"] is None


def test_importing_loads_nothing_heavy_and_a_dan_runs_without_torch(tmp_path):
    from rejoinder.models.folder import write_model

    write_model(tmp_path / "model", dan_model())
    script = (
        "import sys, rejoinder\n"
        "heavy = {'torch', 'duckdb', 'ibis', 'polars', 'numpy', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "encoder = rejoinder.SentenceEncoder.load(sys.argv[1])\n"
        "print(encoder.encode(['hello']).shape)\n"
        "assert not {'torch', 'duckdb', 'ibis', 'tokenizers', 'httpx'} & set(sys.modules)\n"
        "assert 'scipy.special' not in sys.modules  # only GELU needs it, and it takes 0.15 s\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model")], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "(1, 5)\n", "")


def test_how_much_of_a_text_is_read_is_told(through_torch, encoder):
    assert through_torch.describe()["max_tokens"] == 40
    assert encoder.describe()["max_tokens"] is None
    long, longer = "hello " * 40, "hello " * 41
    one, other = through_torch.encode([long, longer])
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("tiny", [transformer_model, bilstm_model])
def test_what_needs_torch_says_what_to_install_without_it(monkeypatch, tiny):
    from rejoinder.errors import MissingExtraError

    model = tiny()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"rejoinder\[train\]"):
        SentenceEncoder(model)


@pytest.mark.parametrize(
    ("tiny", "changed", "said"),
    [
        (transformer_model, {"heads": 3}, r"hidden is 8; allowed: a multiple of 2 \* heads = 6"),
        (bilstm_model, {"max_tokens": 10**9}, "max_tokens .*1000000000"),
    ],
)
def test_sizes_that_no_encoder_has_are_a_damaged_model(tiny, changed, said):
    model = tiny()
    model = replace(model, encoder={**model.encoder, **changed})
    with pytest.raises(ModelError, match=rf"^the encoder of tiny-\w+: {said}.*is damaged\.$"):
        SentenceEncoder(model)


@pytest.mark.parametrize("size", [1.5, "8", None, True, 0, -1, np.float32(2), [4]])
def test_sizes_are_whole_numbers(encoder, size):
    for name, call in {
        "batch_size": lambda: encoder.encode(["hello"], batch_size=size),
        "top_k": lambda: encoder.search("hello", ["hello"], top_k=size),
    }.items():
        with pytest.raises(InputError, match=rf"^{name} must be .*1 or more; got "):
            call()
    with pytest.raises(InputError, match=r"^batch_size must be "):
        encoder.encode_response(["hello"], batch_size=size)
    if size is not None:
        with pytest.raises(InputError, match=r"threads .*1 to 1,024; got "):
            SentenceEncoder(dan_model(), threads=size)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, int])
def test_numbers_of_numpy_are_numbers(encoder, kind):
    expected = encoder.encode(SENTENCES)
    np.testing.assert_allclose(encoder.encode(SENTENCES, batch_size=kind(2)), expected, atol=1e-6)
    assert len(encoder.search("hello", SENTENCES, top_k=kind(2))[0]) == 2
    again = SentenceEncoder(encoder._model, threads=kind(2))
    np.testing.assert_allclose(again.encode(SENTENCES), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["normalize", "show_progress_bar"])
@pytest.mark.parametrize("value", [None, "no", 1])
def test_flags_are_true_or_false(encoder, name, value):
    for call in (encoder.encode, encoder.encode_response):
        defaults = value is None and (name == "show_progress_bar" or call == encoder.encode)
        if not defaults:
            with pytest.raises(InputError, match=rf"{name} .*True or False; got "):
                call(["hello"], **{name: value})
        assert call(["hello"], **{name: np.bool_(False)}).shape == (1, 5)


def test_an_encoder_is_saved_with_its_adaptation(tmp_path):
    model = dan_model()
    encoder = SentenceEncoder(model, threads=1)
    flip = Adaptation(-np.eye(model.dim, dtype=np.float32)[::-1], {"encoder": {"name": "tiny"}})
    adapted = encoder.with_adaptation(flip)
    np.testing.assert_allclose(
        adapted.encode(SENTENCES), -encoder.encode(SENTENCES)[:, ::-1], atol=1e-6
    )
    adapted.save(tmp_path / "adapted")
    loaded = SentenceEncoder.load(tmp_path / "adapted")
    np.testing.assert_array_equal(loaded.encode(SENTENCES), adapted.encode(SENTENCES))
    with pytest.raises(InputError):
        encoder.save(tmp_path / "adapted")
    encoder.save(tmp_path / "adapted", overwrite=True)
    again = SentenceEncoder.load(tmp_path / "adapted")
    np.testing.assert_array_equal(again.encode(SENTENCES), encoder.encode(SENTENCES))
    with pytest.raises(ModelError, match=r"SentenceEncoder.* 3 dimensions.* 5"):
        encoder.with_adaptation(Adaptation(np.eye(3, dtype=np.float32), {}))


@pytest.mark.parametrize("path", [5, None, b"model", ["model"]])
def test_what_is_no_path_is_named(path):
    with pytest.raises(InputError, match=r"got"):
        SentenceEncoder.load(path)


def test_a_model_is_found_by_its_folder_where_no_name_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rejoinder.models.find.FOLDER", tmp_path / "none")
    said = r"no model named '\w.* is installed \(installed: none\)\. Give the path"
    for unknown in ("rejoinder-base", "nowhere", "x" * 5_000):
        with pytest.raises(ModelError, match=said):
            find_model(unknown)
    with pytest.raises(ModelError, match="'rejoinder-base'"):
        SentenceEncoder()
    (tmp_path / "mine").mkdir()
    for path in ("mine", "mine/", "./mine", tmp_path / "mine", "other/nowhere"):
        assert find_model(path) == Path(path)
    with pytest.raises(ModelError, match="is not a model folder"):
        SentenceEncoder.load(Path("nowhere"))


def test_a_shipped_model_is_found_by_its_name_from_any_folder(shipped, tmp_path, monkeypatch):
    from rejoinder.models.folder import write_model

    monkeypatch.chdir(tmp_path)
    default, named = SentenceEncoder(), SentenceEncoder.load("rejoinder-base", threads=1)
    assert default.describe() == named.describe()
    np.testing.assert_array_equal(default.encode(SENTENCES), named.encode(SENTENCES))
    assert SentenceEncoder.load("rejoinder-small").describe()["name"] == "rejoinder-small"
    with pytest.raises(ModelError, match=r"rejoinder-base, rejoinder-small"):
        SentenceEncoder.load("rejoinder")
    (tmp_path / "rejoinder-small").mkdir()
    assert find_model("rejoinder-small") == shipped / "rejoinder-small"
    write_model(tmp_path / "rejoinder-base", dan_model())
    with pytest.raises(ModelError, match=r"\./rejoinder-base.* /"):
        find_model("rejoinder-base")
    assert find_model("./rejoinder-base") == Path("rejoinder-base")
    assert SentenceEncoder().describe()["name"] == "rejoinder-base"


@pytest.mark.parametrize("model", ["rejoinder-base", "runs/model", Path("model"), 5])
def test_a_sha256_belongs_to_an_address(shipped, model):
    with pytest.raises(InputError, match=r"sha256 .*https address"):
        SentenceEncoder.load(model, sha256="0" * 64)
    with pytest.raises(InputError, match=r"sha256 .*https address"):
        load_encoder("baseline:bow", sha256="0" * 64)


def test_the_constructor_takes_a_name_or_a_path(tmp_path):
    small = SentenceEncoder("rejoinder-small")
    small.save(tmp_path / "copy")
    for given_path in (tmp_path / "copy", str(tmp_path / "copy")):
        assert SentenceEncoder(given_path).describe() == small.describe()
    with pytest.raises(ModelError):
        SentenceEncoder(tmp_path / "nothing")
    with pytest.raises(ValueError, match="got 7"):
        SentenceEncoder(7)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda e: e.rank(b"hello", ["you"]), "input must be one string; got a bytes"),
        (lambda e: e.rank("hello", None), "got None"),
        (lambda e: e.similarity(None, "b"), "got None"),
        (lambda e: e.similarity("a", "b", measure=["cosine"]), r"got \['cosine'\]"),
        (lambda e: e.similarity(np.ones((1, 2, 5), np.float32), "b"), r"have shape \(1, 2, 5\)"),
        (lambda e: e.similarity(np.full((1, 5), 1e300), "b"), "not finite, or too large"),
        (lambda e: e.similarity([[0.5] * 5], "b"), "sentence 0 is a list"),
        (lambda e: e.search("hello", None), "got None"),
        (lambda e: e.unknown_share(None), "got None"),
        (lambda e: e.unknown({"a": "b"}), "got a dict"),
    ],
)
def test_what_no_method_takes_is_named(encoder, call, said):
    with pytest.raises(InputError, match=said):
        call(encoder)


def test_unknown_sentences_are_pointed_at(encoder):
    assert encoder.unknown(["hello", "zebra", ""]).tolist() == [False, True, True]
    assert encoder.unknown("zebra").tolist() == [True]


def test_a_word_is_unknown_whether_or_not_it_has_a_bucket():
    encoder = SentenceEncoder("rejoinder-base")
    assert encoder.describe()["dim"] == 512
    texts = ["How old are you?", "Kaç yaşındasın?", "my pasword", "my qzxvkj", "12345", ""]
    assert encoder.unknown_share(texts).round(2).tolist() == [0, 1, 0, 0.5, 0, 0]
    assert encoder.unknown(["Kaçtane yaşındasın", "old"]).tolist() == [True, False]
    assert np.linalg.norm(encoder.encode("Kaçtane yaşındasın")) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "confused"),
    [
        ("The dog bit the man", "the man bit the dog!", False),
        ("a b", "b a", True),
        ("a", "a", False),
    ],
)
def test_the_same_words_in_another_order_are_confused(first, second, confused):
    assert SentenceEncoder("rejoinder-small").confuses(first, second) == confused


def test_an_empty_column_is_no_sentence(encoder):
    assert encoder.encode(pl.Series([])).shape == (0, 5)


def test_a_copy_for_another_process_encodes_the_same(encoder):
    encoder.encode(SENTENCES)  # so that kernels and tables are in use
    copied = pickle.loads(pickle.dumps(encoder))  # noqa: S301 -- what this test has pickled
    np.testing.assert_array_equal(copied.encode(SENTENCES), encoder.encode(SENTENCES))
    assert (copied.on_too_long, copied.dim) == (encoder.on_too_long, encoder.dim)
    assert copy.deepcopy(encoder.encode)("how old").tolist() == encoder.encode("how old").tolist()
