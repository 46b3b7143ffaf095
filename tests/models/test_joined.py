"""Two models side by side: embeddings, replies, what the card says, and what can't be joined."""

from dataclasses import replace

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.adaptation.linear import Adaptation
from rejoinder.models.folder import read_model, write_model
from rejoinder.models.joined import joined
from rejoinder.models.smaller import ExportOptions, smaller
from rejoinder.models.terms import training_rows
from tiny_models import bilstm_model, dan_model

LINEAR = {"layers": (), "head": (4, 6), "buckets": 0}
TEXTS = ["how old are you", "what is your age", "how are you"]
FILES = {"nli/cad_snli_revised.jsonl.zst": {"rows": {"entailment": 9}}}


def linear(seed=0, **training):
    return replace(dan_model(**LINEAR, seed=seed), training=training)


def halves(embeddings, width):
    return [part / np.linalg.norm(part, axis=1, keepdims=True)
            for part in (embeddings[:, :width], embeddings[:, width:])]  # fmt: skip


def test_each_half_says_what_its_model_says(tmp_path):
    one, other = linear(), linear(1)
    write_model(tmp_path / "both", joined(one, other))
    found = SentenceEncoder.load(tmp_path / "both").encode(TEXTS)
    assert found.shape == (3, 12)
    for half, model in zip(halves(found, 6), (one, other), strict=True):
        np.testing.assert_allclose(half, SentenceEncoder(model).encode(TEXTS), atol=1e-5)
    parts = np.linalg.norm(found[:, 6:], axis=1) / np.linalg.norm(found[:, :6], axis=1)
    assert 0.5 < np.median(parts) < 1.5


def test_the_first_model_alone_answers():
    one, both = linear(), joined(linear(), linear(1))
    messages, answers = SentenceEncoder(one), SentenceEncoder(both)
    np.testing.assert_array_equal(
        [hit.text for hit in answers.rank(TEXTS[0], TEXTS)],
        [hit.text for hit in messages.rank(TEXTS[0], TEXTS)],
    )


def test_the_card_names_what_both_were_trained_on(tmp_path):
    both = joined(linear(), linear(1, labelled=FILES))
    assert [row.name for row in training_rows(both.training)] == list(FILES)
    write_model(tmp_path / "both", both)
    assert "| joined with | tiny, SHA-256 " in (tmp_path / "both/MODEL_CARD.md").read_text()


def test_it_is_joined_before_words_are_left_out(tmp_path):
    write_model(tmp_path / "other", linear(1))
    made = smaller(linear(), ExportOptions(max_words=10), join=read_model(tmp_path / "other"))
    assert made.tensors["encoder.table.weight"].shape == (10, 12)


@pytest.mark.parametrize(
    "model",
    [
        dan_model(),
        dan_model(layers=(), head=(), buckets=64),
        bilstm_model(),
        replace(linear(), adaptation=Adaptation(np.eye(6, dtype=np.float32), {})),
    ],
)
def test_what_does_not_add_up_rows_alone_is_refused(model):
    for pair in ((model, linear()), (linear(), model)):
        with pytest.raises(InputError, match="can't be joined"):
            joined(*pair)
