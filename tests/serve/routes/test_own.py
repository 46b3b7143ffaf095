"""Our own routes: rank, search, explain and map."""

from dataclasses import asdict

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder import Index
from rejoinder.corpus.texts import entries_of
from rejoinder.index.folder import TextIndex
from rejoinder.serve.app import create_app
from serving import TEXTS, running, running_app
from tiny_models import dan_model

REPLIES = ["In Oslo.", "I am twenty years old.", "Pizza!", "I am twenty years old."]


def test_rank_is_that_of_the_library(server, encoder):
    body = {"message": "How old are you?", "responses": REPLIES}
    hits = server.client.post("/rank", json=body).json()
    expected = encoder.rank("How old are you?", REPLIES)
    assert [(hit["index"], hit["text"]) for hit in hits] == [(h.index, h.text) for h in expected]
    assert np.allclose([hit["score"] for hit in hits], [h.score for h in expected], atol=1e-6)
    assert len(server.client.post("/rank", json={**body, "top_k": 2}).json()) == 2
    turns = ["Where do you live?", "In Oslo."]
    hits = server.client.post("/rank", json={**body, "context": turns}).json()
    expected = encoder.rank("How old are you?", REPLIES, context=turns)
    assert np.allclose([hit["score"] for hit in hits], [h.score for h in expected], atol=1e-6)


def test_search_finds_in_the_texts_of_the_server(server, encoder):
    answer = server.client.post("/search", json={"queries": ["What is your age?", "pizza"]}).json()
    expected = encoder.search(["What is your age?", "pizza"], list(TEXTS))
    for hits, known in zip(answer, expected, strict=True):
        assert [(hit["index"], hit["text"]) for hit in hits] == [(h.index, h.text) for h in known]
        assert np.allclose([hit["score"] for hit in hits], [h.score for h in known], atol=1e-6)
    assert [len(hits) for hits in server.client.post(
        "/search", json={"queries": "pizza", "top_k": 1}
    ).json()] == [1]  # fmt: skip


def test_search_finds_in_an_index_by_id(model, tmp_path):
    texts = [("age", "How old are you?"), ("home", "Where do you live?")]
    made = Index.create(tmp_path / "index", texts, "rejoinder-small")
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as server:
        queries = ["What is your age?", "your home"]
        answer = server.client.post("/search", json={"queries": queries, "top_k": 1}).json()
        assert [[hit["id"] for hit in hits] for hits in answer] == [["age"], ["home"]]
        assert answer[0][0]["text"] == "How old are you?"
        expected = made.search(queries, 1)[0][0].score
        assert abs(answer[0][0]["score"] - expected) < 1e-6
        assert server.client.get("/info").json()["rejoinder"]["texts"] == 2


def test_search_in_messages_takes_what_the_library_takes(model, tmp_path):
    write(slack.FILES, tmp_path / "slack")
    made = Index.create(tmp_path / "index", tmp_path / "slack", "rejoinder-small")
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as server:
        for chosen in (
            {"mode": "words"},
            {"mode": "hybrid", "weight": 0.2},
            {"where": {"author": ["bob b.", "u9"], "since": "2024-01-01"}},
            {"mode": "hybrid", "where": {"source": "help"}, "context": 1},
        ):
            answer = server.client.post("/search", json={"queries": "Does it work?", **chosen})
            expected = made.search("Does it work?", **chosen)
            assert [[hit["id"] for hit in hits] for hits in answer.json()] == [
                [hit.id for hit in hits] for hits in expected
            ]
            answered = made.find([hit.about.get("answers", "") for hit in expected[0]])
            assert [hit["answered"] for hit in answer.json()[0]] == answered
            around = [(hit["before"], hit["after"]) for hit in answer.json()[0]]
            assert around == [
                tuple([asdict(one) for one in side] for side in (hit.before, hit.after))
                for hit in expected[0]
            ]
        typed = {"queries": 'Does it "since today" -thanks', "typed": True}
        [[hit]] = server.client.post("/search", json=typed).json()
        assert hit["text"] == "Yes, since today"
        for chosen, said in (
            ({"mode": "bm25"}, "mode: "),
            ({"weight": 0.2}, "weight: "),
            ({"mode": "hybrid", "weight": 2}, "weight: "),
            ({"where": {"author": "bop b."}}, "did you mean 'bob b.'?"),
            ({"where": {"author": 7}}, "where.author"),
            ({"where": {"since": "now"}}, "where: since="),
            ({"where": {"has": "file"}}, "where: has"),
            ({"queries": "from:ann", "typed": True}, "only conditions"),
            ({"queries": ["a from:ann", "b"], "typed": True}, "typed: "),
            ({"context": -1}, "context: "),
            ({"context": 50_000}, "100,000"),
        ):
            answer = server.client.post("/search", json={"queries": "a"} | chosen)
            assert answer.status_code == 422
            assert said in answer.json()["error"]
            assert str(tmp_path) not in answer.json()["error"]


@pytest.mark.parametrize("chosen", [{"mode": "words"}, {"where": {}}, {"context": 1}])
def test_plain_texts_are_searched_by_meaning_alone(server, chosen):
    answer = server.client.post("/search", json={"queries": "pizza", **chosen})
    assert answer.status_code == 422
    assert "--index" in answer.json()["error"]


def test_search_finds_messages_with_what_is_known_of_them(model, tmp_path):
    entries = list(entries_of(write(slack.FILES, tmp_path)))
    with running_app(create_app(model, texts=entries)) as server:
        [[hit]] = server.client.post("/search", json={"queries": "Yes, today", "top_k": 1}).json()
        assert hit["text"] == "Yes, since today"
        assert hit["about"].items() >= {"author": "Bob B.", "source": "help"}.items()
        assert hit["id"] == "help/1709280200.000300"
        assert hit["answered"].startswith("Does #billing work")


def test_search_without_texts_says_how_to_give_some():
    with running(dan_model(), texts=()) as server:
        answer = server.client.post("/search", json={"queries": "pizza"})
        assert answer.status_code == 404
        assert "with --texts FILE" in answer.json()["error"]


def test_explain_gives_contributions_that_sum_to_the_cosine(server, encoder):
    pair = "How old are you?", "What is your age?"
    answer = server.client.post("/explain", json={"first": pair[0], "second": pair[1]}).json()
    assert [word["text"] for word in answer["first"]] == ["how", "old", "are", "you", "?"]
    assert [word["text"] for word in answer["second"]] == ["what", "is", "your", "age", "?"]
    contributions = np.array(answer["contributions"])
    assert contributions.shape == (5, 5)
    assert contributions.sum() == pytest.approx(answer["cosine"], abs=1e-6)
    assert answer["cosine"] == pytest.approx(float(encoder.similarity(*pair)[0, 0]), abs=1e-6)
    assert np.unravel_index(contributions.argmax(), (5, 5)) == (1, 3)  # old, age


def test_a_model_with_layers_says_why_it_explains_nothing():
    with running(dan_model()) as server:
        assert not server.client.get("/info").json()["rejoinder"]["explains"]
        answer = server.client.post("/explain", json={"first": "how", "second": "old"})
        assert answer.status_code == 422
        assert "layers" in answer.json()["error"]


def test_a_long_sentence_is_not_explained(server):
    answer = server.client.post("/explain", json={"first": "a " * 300, "second": "b"})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("first: ")


def test_unknown_is_the_share_of_unknown_words(server, encoder):
    texts = ["How old are you?", "Wie geht es deiner Mutter?", ""]
    shares = server.client.post("/unknown", json={"inputs": texts}).json()
    assert shares == encoder.unknown_share(texts).tolist()
    assert shares[0] == 0 < 0.3 < shares[1]


def test_map_puts_equal_texts_on_one_point_and_keeps_the_order(server):
    texts = ["I like cats.", "It rains.", "I like cats.", "I like dogs."]
    answer = server.client.post("/map", json={"inputs": texts}).json()
    points = np.array(answer["points"])
    assert points.shape == (4, 2)
    assert np.allclose(points[0], points[2], atol=1e-6)
    assert np.linalg.norm(points[0] - points[3]) < np.linalg.norm(points[0] - points[1])
    assert 0 < answer["shares"][1] <= answer["shares"][0] <= 1
