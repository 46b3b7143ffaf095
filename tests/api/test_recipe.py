"""Fine-tuning: the rows of new words, and the config that goes on training a model."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from rejoinder.api.finetuning import mixed, recipe, widened
from rejoinder.encoders.layers import dequantized
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model

TABLE = "encoder.table.weight"


@pytest.fixture(scope="module")
def model():
    return read_model(find_model("rejoinder-small"))


def test_new_words_point_to_their_neighbours_and_to_words_spelt_alike(model):
    texts = ["The glorpd restarts the server and the network"] * 3
    words = ["glorpd", "restaurantt", "jxqzv"]
    wider = widened(model, words, [pl.Series(texts)])
    assert wider.features.vocabulary.words == (*model.features.vocabulary.words, *words)
    assert wider.features.unknown_buckets == model.features.unknown_buckets
    one = SentenceEncoder(wider)
    near = one.similarity(["glorpd"], ["network", "banana"])[0]
    assert near[0] > 0.3 > near[1]
    assert one.similarity(["restaurantt"], ["restaurant"])[0, 0] > 0.8
    # known texts are read as before, unknown words still have their buckets
    before = SentenceEncoder(model)
    for text in ("How old are you?", "zzzzz xxxxx", "jxqzv"):
        assert np.allclose(before.encode(text), one.encode(text), atol=1e-6)
    assert widened(model, [], []) is model


def test_new_words_leave_the_way_in_which_misspelt_ones_are_read(model):
    spelt = replace(model, features=replace(model.features, spelling="nearest"))
    wider = widened(spelt, ["restaurantt"], [])
    assert wider.features.spelling
    one = SentenceEncoder(wider)
    assert one.similarity(["netwrok"], ["network"])[0, 0] > 0.99


def test_the_config_takes_the_shape_of_the_model(model):
    config = recipe(model, "folder", "mine", 3_000, seed=5)
    assert (config.name, config.training.seed, config.training.init_from) == ("mine", 5, "folder")
    assert config.encoder.width == model.dim
    assert all(size < model.dim for size in config.training.nested_dims)
    assert recipe(model, "folder", "mine", 10**6, most_steps=7).steps == 7
    with pytest.raises(InputError, match="response head"):
        recipe(replace(model, heads={}), "folder", "mine", 3_000)


def test_weights_lie_between_the_old_and_the_trained_ones(model):
    old = replace(model, tensors=dequantized(model.tensors))
    trained = replace(old, tensors={**old.tensors, TABLE: 3 * old.tensors[TABLE]})
    assert np.allclose(mixed(old, trained, 0.25).tensors[TABLE], 1.5 * old.tensors[TABLE])
    for share, whole in ((0.0, old), (1.0, trained)):
        for name, tensor in mixed(old, trained, share).tensors.items():
            assert np.array_equal(tensor, whole.tensors[name])
