"""Routes of what `rejoinder explore` found."""

import json
import shutil
from collections import Counter
from functools import partial

import numpy as np
import pytest

from export_samples import slack, write
from rejoinder.cli.serve import read_explored
from rejoinder.conversations.explore import FILE, explore
from rejoinder.index.folder import TextIndex
from rejoinder.serve.app import create_app
from rejoinder.serve.service import Explored, Latest
from serving import running_app

DAYS = 8
ASKED = "How do I open the billing page?", "Where is the printer on the second floor?"


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A team that asks two questions each day."""
    export = write(slack.FILES, tmp_path_factory.mktemp("explored") / "team")
    for day in range(1, 1 + DAYS):
        sent = [
            {"type": "message", "user": f"U{day}", "ts": f"171{day}{n}00000.0001", "text": text}
            for n, text in enumerate((*ASKED, f"The garden has {day} trees and a pond"))
        ]
        (export / f"help/2024-04-0{day}.json").write_text(json.dumps(sent))
    return explore(export, model="rejoinder-small")


@pytest.fixture(scope="module")
def explored(ready):
    return read_explored(ready, "team", None)


@pytest.fixture(scope="module")
def client(model, ready, explored):
    app = create_app(model, index=TextIndex(ready.index), explored=lambda: explored)
    with running_app(app) as started:
        yield started.client


def test_the_corpus_says_what_was_found(client, ready):
    answer = client.get("/corpus").json()
    assert (answer["name"], answer["command"]) == ("team", str(ready.index))
    assert answer["found"] == ["asked", "topics", "suggest"]


def test_questions_are_those_that_were_found(client):
    answer = client.get("/asked")
    assert answer.headers["content-type"] == "application/json"
    assert {(one["text"], one["count"]) for one in answer.json()} == {(one, DAYS) for one in ASKED}


def test_every_message_has_a_place_on_the_map(client, explored):
    topics = client.get("/topics").json()
    content = client.get("/points").content
    count = len(explored.ids)
    assert len(content) == 16 * count
    x, y = np.frombuffer(content, "<f4", 2 * count).reshape(2, -1)
    labels, months = np.frombuffer(content, "<i4", 2 * count, 8 * count).reshape(2, -1)
    assert max(abs(x).max(), abs(y).max()) <= 1
    assert labels.min() >= -1
    assert labels.max() == len(topics["topics"]) - 1
    for topic in topics["topics"]:
        assert topic["size"] == (labels == topic["id"]).sum()
    known = Counter(np.datetime_as_string(months.astype("datetime64[M]")).tolist())
    assert known == topics["months"]


def test_messages_of_points_are_read(client, explored):
    [second, first] = client.post("/messages", json={"rows": [1, 0]}).json()
    assert [first["id"], second["id"]] == list(explored.ids[:2])
    assert first["about"]["source"] == "help"
    answer = client.post("/messages", json={"rows": [len(explored.ids)]})
    assert (answer.status_code, answer.json()["error"][:5]) == (422, "rows:")


def test_a_message_that_was_deleted_is_left_out(model, ready, explored, tmp_path):
    index = TextIndex(shutil.copytree(ready.index, tmp_path / "index"))
    index.delete(explored.ids[0])
    with running_app(create_app(model, index=index, explored=lambda: explored)) as started:
        answer = started.client.post("/messages", json={"rows": [0, 1]}).json()
        assert [one["id"] for one in answer] == [explored.ids[1]]


@pytest.mark.parametrize("path", ["/asked", "/topics", "/points"])
def test_what_was_not_looked_for_is_not_found(server, path):
    answer = server.client.get(path)
    assert (answer.status_code, "explore" in answer.json()["error"]) == (404, True)


def test_replies_are_suggested_by_everybody_or_one_author(client):
    body = {"message": "Does #billing work for Eve? I can't open it", "top_k": 2}
    answer = client.post("/suggest", json=body).json()
    best = answer["suggestions"][0]
    assert best["reply"] == "Yes, since today"
    assert best["answered"].startswith("Does #billing work")
    assert best["about"]["author"] == "Bob B."
    assert (best["confidence"], answer["is_good"]) == (None, None)  # too few to tell
    assert client.post("/suggest", json={**body, "author": "bob b."}).json() == answer
    answer = client.post("/suggest", json={**body, "author": "u9"})
    assert (answer.status_code, "u9" in answer.json()["error"]) == (422, True)


def test_without_replies_nothing_is_suggested(model, ready):
    app = create_app(model, index=TextIndex(ready.index), explored=lambda: Explored("a", "b"))
    with running_app(app) as started:
        answer = started.client.post("/suggest", json={"message": "a"})
        assert answer.status_code == 404
        assert started.client.get("/corpus").json()["found"] == []


def test_what_is_prepared_again_is_answered_at_once(model, tmp_path):
    log = tmp_path / "chat.csv"
    log.write_text("id,text\n1,Is it open?\n2,Yes.\n")
    ready = explore(log, model="rejoinder-small", columns="text=text,id=id")
    latest = Latest(ready.folder / FILE, partial(read_explored, ready, "chat", None))
    app = create_app(model, index=TextIndex(ready.index), explored=latest)
    with running_app(app) as started:
        assert started.client.post("/messages", json={"rows": [2]}).status_code == 422
        log.write_text("id,text\n1,Is it open?\n2,Yes.\n3,Since when?\n")
        explore(log, model="rejoinder-small", columns="text=text,id=id")
        [found] = started.client.post("/messages", json={"rows": [2]}).json()
        assert found["text"] == "Since when?"
        assert len(started.client.get("/points").content) == 3 * 16
