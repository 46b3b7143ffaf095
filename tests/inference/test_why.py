"""Contributions of words are exact: they sum to the cosine of the encoder."""

from dataclasses import replace

import numpy as np
import pytest

from rejoinder.errors import ModelError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.why import explain, word_shares
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from tiny_models import dan_model

PAIRS = [
    ("How old are you?", "What is your age?"),
    ("how old are you where do you live", "you live in oslo"),
    ("", "how old"),
    ("zyxxyq", "zyxxyq"),
    ("ﬁne “cats”", "the cat's fine"),
]


def rotation(dim):
    draw = np.random.default_rng(3)
    matrix = draw.standard_normal((dim, dim)).astype(np.float32)
    return Adaptation(matrix, {"source": "a test"})


MODELS = {
    "words and bigrams": dan_model(layers=(), width=5),
    "a mean with buckets of unknown words": dan_model(
        layers=(), width=5, buckets=0, unknown_buckets=8, combiner="mean"
    ),
    "float16": dan_model(layers=(), width=5, dtype=np.float16),
    "adapted": replace(dan_model(layers=(), width=5), adaptation=rotation(5)),
    "int8": read_model(shipped_model("rejoinder-small")),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_the_cosine(name, pair):
    model = MODELS[name]
    found = explain(model, *pair)
    cosine = float(SentenceEncoder(model).similarity(*pair)[0, 0])
    assert found.contributions.shape == (len(found.first), len(found.second))
    assert found.contributions.sum() == pytest.approx(cosine, abs=1e-6)
    assert found.cosine == pytest.approx(cosine, abs=1e-6)


def test_a_pair_of_words_adds_what_the_cosine_loses_without_them():
    """Written out with the rows of the table."""
    model = dan_model(layers=(), width=5, buckets=0)
    found = explain(model, "how old", "age")
    table = model.tensors["encoder.table.weight"].astype(np.float64)
    rows = [table[token.id] for token in (*found.first, *found.second)]
    lengths = np.linalg.norm(rows[0] + rows[1]) * np.linalg.norm(rows[2])
    assert found.contributions[1, 0] == pytest.approx(rows[1] @ rows[2] / lengths)


def test_bigrams_without_a_row_add_nothing_and_are_not_listed():
    model = dan_model(layers=(), width=5)
    listed = {token.text for token in explain(model, "how old are you where do", "age").first}
    assert {"how", "old", "are", "you"} <= listed
    assert 0 < sum(" " in text for text in listed) < 5


def test_layers_are_refused_with_the_reason():
    model = dan_model(layers=(7, 5))
    assert not model.is_sum_of_rows
    with pytest.raises(ModelError, match="layers between words and embedding"):
        explain(model, "how old", "age")


@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("name", ["rejoinder-base", "rejoinder-small"])
def test_shares_of_words_are_those_of_the_explanation(name, adapted):
    model = read_model(shipped_model(name))
    model = replace(model, adaptation=rotation(model.dim) if adapted else None)
    texts = ["Tell me: how old are you?", "", "What age is the zyxxyq?"]
    found = word_shares(model, "What is your age?", texts)
    for text, (cosine, words) in zip(texts, found, strict=True):
        explanation = explain(model, "What is your age?", text)
        assert cosine == pytest.approx(explanation.cosine, abs=1e-6)
        assert sum(share for *_, share in words) == pytest.approx(cosine, abs=1e-6)
        assert {text[start:stop].lower() for start, stop, _ in words} == {
            part for token in explanation.second for part in token.text.split()
        }
    if not adapted:
        start, stop, _ = max(found[0][1], key=lambda share: share[2])
        assert texts[0][start:stop] == "old"


def test_half_of_a_bigram_is_each_of_its_words():
    model = dan_model(layers=())
    text = "how old are you where do you live"
    [(cosine, words)] = word_shares(model, "how old", [text])
    explanation = explain(model, "how old", text)
    added = explanation.contributions.sum(axis=0).tolist()
    expected = dict.fromkeys((start for start, *_ in words), 0.0)
    for token, share in zip(explanation.second, added, strict=True):
        first, *second = token.text.split()
        expected[token.start] += share / (1 + len(second))
        if second:
            expected[token.start + len(first) + 1] += share / 2
    assert any(" " in token.text for token in explanation.second)
    assert [share for *_, share in words] == pytest.approx([*expected.values()])
    assert sum(expected.values()) == pytest.approx(cosine)
