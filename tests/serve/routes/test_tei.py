"""The routes of text-embeddings-inference."""

import re

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rejoinder.errors import ModelError
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.scoring.scorer import Scorer, shipped_scorer
from rejoinder.serve.app import create_app
from rejoinder.text.vocabulary import letter_sequences
from serving import running, running_app
from tiny_models import bilstm_model

AGES = ["How old are you?", "What is your age?", "I like pizza."]


@pytest.mark.parametrize("path", ["/embed", "/"])
def test_embed_takes_one_text_or_several(server, encoder, path):
    one = server.client.post(path, json={"inputs": AGES[0]}).json()
    assert np.allclose(one, encoder.encode(AGES[:1]), atol=1e-6)
    three = server.client.post(
        path, json={"inputs": AGES, "truncate": True, "truncation_direction": "right"}
    ).json()
    assert np.allclose(three, encoder.encode(AGES), atol=1e-6)


@pytest.fixture(scope="module")
def reads_40_tokens():
    with running(bilstm_model()) as started:
        yield started


LONG = " ".join(["cat"] * 41)


@pytest.mark.parametrize(
    ("path", "body", "field", "index"),
    [
        ("/embed", {"inputs": ["cat", LONG]}, "inputs", 1),
        ("/rerank", {"query": LONG, "texts": ["cat"]}, "query", 0),
        ("/rerank", {"query": "cat", "texts": ["cat", LONG]}, "texts", 1),
    ],
)
def test_truncate_false_refuses_what_would_be_cut(reads_40_tokens, path, body, field, index):
    for allowed in ({}, {"truncate": None}, {"truncate": True}):
        assert reads_40_tokens.client.post(path, json={**body, **allowed}).status_code == 200
    answer = reads_40_tokens.client.post(path, json={**body, "truncate": False})
    assert answer.status_code == 422
    assert re.match(rf"{field}: text {index}\b.*\b40\b", answer.json()["error"])


def test_similarity_reads_truncate_from_its_parameters(reads_40_tokens):
    body = {"inputs": {"source_sentence": "cat", "sentences": [LONG]}}
    assert reads_40_tokens.client.post("/similarity", json=body).status_code == 200
    body["parameters"] = {"truncate": False}
    answer = reads_40_tokens.client.post("/similarity", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("inputs.sentences: text 0 ")
    body["inputs"]["sentences"] = ["cat"]
    assert reads_40_tokens.client.post("/similarity", json=body).status_code == 200


def test_truncate_false_changes_nothing_where_all_tokens_are_read(server):
    answer = server.client.post("/embed", json={"inputs": [LONG * 30], "truncate": False})
    assert answer.status_code == 200


def test_dimensions_cut_and_scale_again(server, encoder):
    rows = server.client.post("/embed", json={"inputs": AGES, "dimensions": 16}).json()
    cut = encoder.encode(AGES)[:, :16]
    assert np.allclose(rows, cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-6)


def test_similarity_is_the_cosine(server, encoder):
    inputs = {"source_sentence": AGES[0], "sentences": AGES[1:]}
    answer = server.client.post("/similarity", json={"inputs": inputs}).json()
    assert np.allclose(answer, encoder.similarity(AGES[0], AGES[1:])[0], atol=1e-6)


def test_rerank_orders_by_similarity_and_scores_from_0_to_1(server, encoder):
    body = {"query": AGES[0], "texts": AGES[::-1]}
    cosines = encoder.similarity(AGES[0], AGES[::-1])[0]
    raw = server.client.post("/rerank", json={**body, "raw_scores": True}).json()
    assert [hit["index"] for hit in raw] == np.argsort(-cosines).tolist()
    assert np.allclose([hit["score"] for hit in raw], np.sort(cosines)[::-1], atol=1e-6)
    assert set(raw[0]) == {"index", "score"}
    hits = server.client.post("/rerank", json={**body, "return_text": True}).json()
    assert hits[0]["text"] == AGES[0]
    assert np.allclose(
        [hit["score"] for hit in hits], [(1 + hit["score"]) / 2 for hit in raw], atol=1e-6
    )


def test_rerank_by_a_scorer():
    model, folder = read_model(shipped_model()), shipped_scorer()
    body = {"query": "He is playing chess.", "texts": ["He never plays chess.", "He plays chess."]}
    with running_app(create_app(model, scorer=folder)) as started:
        raw = started.client.post("/rerank", json={**body, "raw_scores": True}).json()
        hits = started.client.post("/rerank", json={**body, "return_text": True}).json()
        refused = started.client.post("/rerank", json={**body, "texts": ["a"] * 3_000})
    expected = Scorer(folder).score([body["query"]] * 2, body["texts"])
    assert [hit["index"] for hit in raw] == [1, 0]
    assert [hit["score"] for hit in raw] == pytest.approx(expected[::-1].tolist(), abs=0.05)
    assert [hit["score"] for hit in hits] == pytest.approx([hit["score"] / 5 for hit in raw])
    assert hits[0]["text"] == body["texts"][1]
    assert refused.status_code == 422
    with pytest.raises(ModelError):
        create_app(read_model(shipped_model("rejoinder-small")), scorer=folder)


def test_tokenize_names_what_the_model_reads(server, model):
    text = "Don’t  panic ﬁne Zyxxyq!"
    [tokens] = server.client.post("/tokenize", json={"inputs": text}).json()
    letters = letter_sequences("zyxxyq")
    assert [token["text"] for token in tokens] == ["don't", "panic", "fine", *letters, "!"]
    assert [text[token["start"] : token["stop"]] for token in tokens] == [
        "Don’t",
        "panic",
        "ﬁne",
        *["Zyxxyq"] * len(letters),
        "!",
    ]
    assert [token["id"] for token in tokens] == model.features([text])[0].tolist()
    assert not any(token["special"] for token in tokens)


def test_info_says_what_is_served(server, encoder):
    info = server.client.get("/info").json()
    description = encoder.describe()
    assert (info["model_id"], info["model_sha"]) == ("rejoinder-small", description["sha256"])
    assert info["max_client_batch_size"] == 2_048
    own = info["rejoinder"]
    assert own["language"] == "en"
    assert (own["dim"], own["ranks"], own["explains"], own["texts"]) == (encoder.dim, True, True, 4)


def test_health(server):
    assert server.client.get("/health").json() == {"status": "ok"}


def test_metrics_count_requests_by_route_and_texts_by_batch(server):
    def value(name, **labels):
        text = server.client.get("/metrics").text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    before = value("rejoinder_requests_total", route="/embed", status="200")
    texts = value("rejoinder_batch_texts_sum")
    strangers = value("rejoinder_requests_total", route="none", status="404")
    server.client.post("/embed", json={"inputs": AGES})
    server.client.get("/never/heard/of")
    assert value("rejoinder_requests_total", route="/embed", status="200") == before + 1
    assert value("rejoinder_batch_texts_sum") == texts + 3
    assert value("rejoinder_requests_total", route="none", status="404") == strangers + 1
    assert value("rejoinder_queue_texts") == 0
    server.client.get("/v1/models/ada")
    assert value("rejoinder_requests_total", route="/v1/models/{name}", status="404") == 1
