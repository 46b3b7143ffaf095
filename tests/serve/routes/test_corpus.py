"""Routes of an index of messages: what it holds, messages like one, those around one, and why."""

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder import Index
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts
from rejoinder.models.folder import read_model, write_model
from rejoinder.serve.app import create_app
from serving import running_app
from tiny_models import dan_model

ASKED = "help/1709280100.000200"
"""The message that begins a thread."""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write(slack.FILES, folder / "slack")
    return Index.create(folder / "index", folder / "slack", "rejoinder-small")


@pytest.fixture(scope="module")
def messages(model, index):
    with running_app(create_app(model, index=TextIndex(index.folder))) as started:
        yield started.client


def test_the_corpus_is_counted(messages, index):
    answer = messages.get("/corpus").json()
    assert answer["texts"] == len(index) == 4
    assert answer["sources"] == [["help", 4]]
    assert answer["authors"] == [["Ann", 2], ["Bob B.", 1], ["U9", 1]]
    assert (answer["first"], answer["last"]) == (1709280100.0002, 1709366500.0006)
    assert answer["threads"] is True
    assert (answer["name"], answer["found"]) == (None, [])
    assert messages.get("/info").json()["rejoinder"]["corpus"] is True


def test_messages_like_one_are_the_nearest_without_it(messages, index):
    hits = messages.post("/similar", json={"id": ASKED, "top_k": 2}).json()
    row = index.embeddings([ASKED])
    nearest = [hit for hit in index.nearest(row, 3)[0] if hit.id != ASKED]
    assert [hit["id"] for hit in hits] == [hit.id for hit in nearest][:2]
    assert ASKED not in [hit["id"] for hit in hits]
    where = {"author": "u9"}
    [only] = messages.post("/similar", json={"id": ASKED, "where": where}).json()
    assert only["about"]["author"] == "U9"
    answer = messages.post("/similar", json={"id": ASKED, "where": {"author": "nobody"}})
    assert (answer.status_code, answer.json()["error"][:6]) == (422, "where:")


def test_words_that_a_search_reads_as_others_are_told(messages, index):
    queries = ["since yesteray", "since today"]
    answer = messages.post("/read", json={"queries": queries}).json()
    assert answer == index.read_as(queries) == [{"yesteray": "yesterday"}, {}]


def test_a_message_comes_with_those_around_it(messages):
    answer = messages.post("/around", json={"id": ASKED, "context": 1}).json()
    assert answer["id"] == ASKED
    assert answer["before"] == []
    [reply] = answer["after"]
    assert reply["text"] == "Yes, since today"
    assert reply["about"]["answers"] == ASKED
    around = messages.post("/around", json={"id": reply["id"], "context": 9}).json()
    assert around["answered"] == answer["text"]
    assert [one["text"] for one in around["after"]] == ["Thanks!"]


def test_a_message_comes_with_its_exchange(model, tmp_path):
    """Also with what is further away than those around it, and than those that are read."""
    answers = {"20": "10", "30": "10", "250": "0", "280": "250", "299": "280"}
    known = [
        {"author": "Ann", "source": "irc", "time": float(at)}
        | ({"answers": answers[str(at)], "confidence": 0.9} if str(at) in answers else {})
        for at in range(300)
    ]
    names = [str(at) for at in range(300)]
    made = Index.create(tmp_path / "index", [("first", "first")], "rejoinder-small")
    rows = np.tile(made.embeddings(["first"]), (300, 1))
    made.add_encoded([EncodedTexts(names, names, rows, known)])
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as started:
        for name, context, exchange in (
            ("20", 2, ["10", "20", "30"]),
            ("15", 2, ["15"]),
            ("280", 2, ["0", "250", "280", "299"]),
            ("0", 300, ["0", "250", "280", "299"]),
            ("first", 2, ["first"]),
        ):
            answer = started.client.post("/around", json={"id": name, "context": context}).json()
            assert [one["id"] for one in answer["exchange"]] == exchange
            most = 0 if name == "first" else context
            assert len(answer["before"]) == min(most, int(name) if most else 0)
            assert len(answer["after"]) == min(most, 299 - int(name) if most else 0)
        [_, middle, _] = started.client.post("/around", json={"id": "20"}).json()["exchange"]
        assert middle == {"id": "20", "text": "20", "about": known[20]}


def test_of_a_long_exchange_the_nearest_are_sent(model, tmp_path):
    names = [str(at) for at in range(100)]
    known = [{"source": "irc", "answers": "0", "time": float(at)} for at in range(100)]
    made = Index.create(tmp_path / "index", [("first", "first")], "rejoinder-small")
    rows = np.tile(made.embeddings(["first"]), (100, 1))
    made.add_encoded([EncodedTexts(names, names, rows, known)])
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as started:
        answer = started.client.post("/around", json={"id": "50"}).json()
    assert [one["id"] for one in answer["exchange"]] == names[20:81]


@pytest.mark.parametrize("path", ["/similar", "/around"])
def test_an_unknown_id_is_not_found(messages, path):
    answer = messages.post(path, json={"id": "nobody"})
    assert answer.status_code == 404
    assert "'nobody'" in answer.json()["error"]


@pytest.mark.parametrize("mode", ["words", "hybrid", "semantic"])
def test_a_hit_says_which_words_made_it_one(messages, encoder, mode):
    body = {"queries": "does it WORK for you", "mode": mode, "top_k": 2, "explain": True}
    [hits] = messages.post("/search", json=body).json()
    for hit in hits:
        found = {hit["text"][start:stop].lower() for start, stop in hit["why"]["matches"]}
        assert found == {*hit["text"].lower().split()} & {"does", "it", "work", "for", "you"}
        cosine = float(encoder.similarity("does it WORK for you", hit["text"])[0, 0])
        assert hit["why"]["cosine"] == pytest.approx(cosine, abs=1e-5)
        total = sum(share for _, _, share in hit["why"]["words"])
        assert total == pytest.approx(cosine, abs=1e-3)
    [plain] = messages.post("/search", json={**body, "explain": False}).json()
    assert [hit["id"] for hit in plain] == [hit["id"] for hit in hits]
    assert all("why" not in hit for hit in plain)


def test_a_model_with_layers_tells_matches_alone(tmp_path):
    write_model(tmp_path / "tiny", dan_model())
    Index.create(tmp_path / "index", [("a", "how old"), ("b", "where")], tmp_path / "tiny")
    app = create_app(read_model(tmp_path / "tiny"), index=TextIndex(tmp_path / "index"))
    with running_app(app) as started:
        body = {"queries": "how", "mode": "words", "explain": True}
        [[hit]] = started.client.post("/search", json=body).json()
        assert hit["why"] == {"matches": [[0, 3]], "cosine": None, "words": []}


def test_so_many_hits_are_not_explained(messages):
    body = {"queries": ["a"] * 300, "top_k": 4, "explain": True}
    answer = messages.post("/search", json=body)
    assert answer.status_code == 422
    assert "100,000" in answer.json()["error"]


def test_texts_without_an_index_have_no_corpus(server):
    assert server.client.get("/corpus").status_code == 404
    assert "--index FOLDER" in server.client.get("/corpus").json()["error"]
    assert server.client.get("/info").json()["rejoinder"]["corpus"] is False
