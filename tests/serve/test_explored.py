"""Routes of what `rejoinder explore` found."""

import msgspec
import pytest

from export_samples import slack, write
from rejoinder.api.exploring import ASKED, explore
from rejoinder.index.folder import TextIndex
from rejoinder.serve.app import create_app
from rejoinder.serve.explored import Explored
from serving import running_app


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    return explore(write(slack.FILES, folder / "team"), model="rejoinder-small")


@pytest.fixture(scope="module")
def client(model, ready):
    explored = Explored("team", "team.explore/index", asked=(ready.folder / ASKED).read_bytes())
    app = create_app(model, index=TextIndex(ready.index), explored=explored)
    with running_app(app) as started:
        yield started.client


def test_the_corpus_says_what_was_found(client):
    answer = client.get("/corpus").json()
    assert (answer["name"], answer["command"]) == ("team", "team.explore/index")
    assert answer["found"] == ["asked"]


def test_questions_are_sent_as_they_were_found(client, ready):
    answer = client.get("/asked")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == msgspec.json.decode((ready.folder / ASKED).read_bytes())


def test_what_was_not_looked_for_is_not_found(client, server):
    answer = server.client.get("/asked")
    assert (answer.status_code, "explore" in answer.json()["error"]) == (404, True)
