"""The contract of all encoder kinds: what batches, order, export and resuming must not change."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from rejoinder.encoders import ENCODERS, SubwordSizes, WordSizes, checked
from rejoinder.encoders.nn.layers import shapes_of
from rejoinder.encoders.settings import check
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.text.ragged import Ragged
from rejoinder.training.config.loading import to_tree
from runs import SMALL_ENCODERS, same_files, small_run

ROWS = 20
TEXTS = ["How old are you?", "What is your age?", "", "I live in Oslo.", "zzzz"]
sentences = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=9), min_size=1, max_size=8)
every_kind = pytest.mark.parametrize("kind", list(ENCODERS))


def ragged(lists):
    flat = np.array([item for row in lists for item in row], np.int32)
    return Ragged(flat, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def encoder(kind, seed=3):
    record = ENCODERS[kind]
    config = check(record.config_class, SMALL_ENCODERS[kind], kind)
    return record.module_class(ROWS, config, torch.Generator().manual_seed(seed))


def encoded(model, lists, **options):
    with torch.no_grad():
        return model(model.collate(ragged(lists)), **options)


@every_kind
@settings(max_examples=20)
@given(lists=sentences)
def test_neither_batch_nor_padding_changes_an_embedding(kind, lists):
    model = encoder(kind).eval()
    whole = encoded(model, lists)
    alone = torch.cat([encoded(model, [row]) for row in lists])
    assert whole.shape == (len(lists), model.dim)
    assert whole.dtype == torch.float32
    torch.testing.assert_close(whole, alone, atol=1e-5, rtol=0)


@every_kind
@settings(max_examples=10)
@given(lists=sentences)
def test_sentences_in_another_order_have_the_same_embeddings(kind, lists):
    model = encoder(kind).eval()
    torch.testing.assert_close(
        encoded(model, lists[::-1]).flip(0), encoded(model, lists), atol=1e-5, rtol=0
    )


@every_kind
def test_rows_have_length_one_and_empty_sentences_are_zero(kind):
    model = encoder(kind).eval()
    lists = [[1, 2, 3], [], [4], []]
    for normalize in (True, False):
        rows = encoded(model, lists, normalize=normalize)
        assert not rows[[1, 3]].any()
        assert rows[[0, 2]].any(dim=1).all()
        if normalize:
            assert rows.norm(dim=1).tolist() == pytest.approx([1, 0, 1, 0], abs=1e-5)
    unit = torch.nn.functional.normalize(encoded(model, lists, normalize=False), dim=1)
    torch.testing.assert_close(unit, encoded(model, lists), atol=1e-6, rtol=0)
    assert encoded(model, []).shape == (0, model.dim)


@every_kind
def test_the_same_seed_draws_the_same_weights_and_another_seed_others(kind):
    one, same, other = (encoder(kind, seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


@every_kind
def test_evaluation_leaves_no_trace(kind):
    model = encoder(kind).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    encoded(model, [[1, 2]])
    model(model.collate(ragged([[1, 2]])))
    assert not any(table.touched for table in model.tables())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@every_kind
def test_bfloat16_is_near(kind):
    model = encoder(kind).eval()
    exact = encoded(model, [[1, 2, 3], [4]])
    with torch.autocast("cpu", torch.bfloat16):
        near = encoded(model, [[1, 2, 3], [4]])
    assert near.dtype == torch.float32
    torch.testing.assert_close(near, exact, atol=0.03, rtol=0)


@every_kind
def test_shapes_listed_without_torch_are_those_of_the_module(kind):
    record = ENCODERS[kind]
    config = check(record.config_class, SMALL_ENCODERS[kind], kind)
    table = to_tree(config)
    assert record.dim(table) == config.dim == encoder(kind).dim
    for buckets in (0, 7) if record.bigrams else (0,):
        text = {"words": 15, "unknown_buckets": 5, "bigram_buckets": buckets}
        of_text = WordSizes
        if record.text == "subwords":
            text, of_text = {"subwords": 20}, SubwordSizes
        listed = record.tensor_shapes(table, text, "test")
        sizes = checked(of_text, text, "test")
        assert listed == shapes_of(record, table, sizes, "test")


@every_kind
def test_the_rows_of_tokens_are_those_that_the_encoder_reads(kind):
    record = ENCODERS[kind]
    if record.token_rows is None:
        pytest.skip("a kind without a row per token")
    model = encoder(kind).eval()
    before = encoded(model, [[1], [2]])
    rows = model.get_parameter(record.token_rows)
    assert len(rows) == ROWS
    with torch.no_grad():
        rows[1] *= -1
    after = encoded(model, [[1], [2]])
    assert (after[0] - before[0]).abs().max() > 1e-4
    torch.testing.assert_close(after[1], before[1])


@every_kind
def test_rows_begin_as_vectors_of_the_training_text(train, tmp_path, kind):
    record = ENCODERS[kind]
    if record.token_rows is None:
        pytest.skip("a kind without a row per token")
    rows = {}

    def keep(encoder):
        rows["trained"] = encoder.model.get_parameter(f"encoder.{record.token_rows}").detach()
        return {"score": 1.0}

    still = [{"steps": 1, "batch_size": 8, "learning_rate": 1e-9}]
    run = small_run(kind, training={"row_init": "cooccurrence"}, phases=still)
    train(run, tmp_path / "run", evaluate=keep)
    learned = load_file(tmp_path / "run/word_rows.safetensors")["rows"].astype(np.float32)
    known = learned.any(axis=1)
    assert known.sum() > 40  # many bytes occur nowhere
    turned = torch.nn.functional.normalize(rows["trained"][: len(learned)], dim=1).numpy()
    np.testing.assert_allclose(turned[known], learned[known], atol=2e-3)


@every_kind
def test_tensors_have_the_same_names_and_values_in_the_run_and_in_the_model(train, tmp_path, kind):
    from rejoinder.models.folder import read_model

    run = small_run(kind, export={"dtype": "float32"})
    state = {}
    result, _ = train(run, tmp_path / "run", evaluate=partial(_keep_state, state))
    tensors = read_model(result.model).tensors
    table = f"encoder.{ENCODERS[kind].table}"
    shared = [name for name in tensors if name in state and name != table]
    assert len(shared) >= len(tensors) - 3  # the table, its index and the scale
    for name in shared:
        np.testing.assert_array_equal(tensors[name], state[name])


def _keep_state(state, live):
    state.update({name: value.numpy() for name, value in live.model.state_dict().items()})
    return {"score": 1.0}


@every_kind
def test_the_exported_model_encodes_as_the_trained_one(train, tmp_path, kind):
    live = {}

    def keep(encoder):
        live["sentences"] = encoder.encode(TEXTS)
        live["responses"] = encoder.encode_response(TEXTS)
        return {"score": 1.0}

    # after an epoch every word was trained; others are left out of a model
    phases = [{"steps": 80, "batch_size": 64, "learning_rate": 0.01}]
    run = small_run(kind, export={"dtype": "float32"}, phases=phases, training={"log_every": 50})
    result, _ = train(run, tmp_path / "run", evaluate=keep)
    model = SentenceEncoder.load(result.model)
    np.testing.assert_allclose(model.encode(TEXTS), live["sentences"], atol=2e-5)
    np.testing.assert_allclose(model.encode_response(TEXTS), live["responses"], atol=2e-5)
    assert not model.encode(TEXTS)[2].any()
    training = model.describe()["training"]
    assert (training["pairs"], training["steps"]) == (result.pairs, 80)


@every_kind
def test_stopped_and_resumed_is_the_same_to_the_bit(train, tmp_path, kind):
    whole, _ = train(small_run(kind), tmp_path / "whole")
    assert whole.done
    for stop_at in (5, 15):
        out = tmp_path / str(stop_at)
        train(small_run(kind), out, stop_at=stop_at)
        parts, _ = train(small_run(kind), out, resume=True)
        assert parts.done
        assert same_files(whole.model, parts.model)
