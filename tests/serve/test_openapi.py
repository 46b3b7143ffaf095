"""The OpenAPI: every route, with an example that works."""

import orjson
import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from rejoinder import Index
from rejoinder.conversations.asked import Asked, Reply
from rejoinder.conversations.suggestions import Suggested, Suggestion
from rejoinder.conversations.topics import FoundTopics, Topic
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import EncodedTexts
from rejoinder.serve.app import create_app
from rejoinder.serve.routes import ROUTERS
from rejoinder.serve.service import Explored
from serving import TEXTS, running_app

ROUTES = {
    "/embed", "/similarity", "/rerank", "/tokenize", "/info", "/health", "/metrics", "/rank",
    "/search", "/texts", "/read", "/explain", "/unknown", "/map", "/v1/embeddings", "/v1/models",
    "/v1/models/{name}", "/corpus", "/similar", "/around", "/asked",
    "/topics", "/points", "/messages", "/suggest",
}  # fmt: skip
OF_AN_INDEX = {
    "/corpus",
    "/similar",
    "/around",
    "/asked",
    "/topics",
    "/points",
    "/messages",
    "/suggest",
}


@pytest.fixture(scope="module")
def api(server):
    return server.client.get("/openapi.json").json()


def resolved(api, schema):
    name = schema.get("$ref", "").rpartition("/")[2]
    return api["components"]["schemas"][name] if name else schema


def example(api, schema):
    """Builds a body from the examples of the required fields."""
    schema = resolved(api, schema)
    if "examples" in schema:
        return schema["examples"][0]
    return {name: example(api, schema["properties"][name]) for name in schema["required"]}


def test_it_lists_every_route_and_no_other_error_form(api):
    assert set(api["paths"]) == ROUTES
    assert "HTTPValidationError" not in api["components"]["schemas"]
    for path, item in api["paths"].items():
        for operation in item.values():
            assert operation["summary"]
            faulty = operation["responses"]["422"]["content"]["application/json"]["schema"]
            form = "OpenAIError" if path.startswith("/v1/") else "TeiError"
            assert faulty["$ref"].endswith(f"/{form}")


@pytest.fixture(scope="module")
def indexed(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexed") / "index"
    made = Index.create(folder, TEXTS, "rejoinder-small")
    row = made.encoder.encode(["Fine."])
    made.add_encoded([EncodedTexts(["m"], ["Fine."], row, [{"source": "help"}])])
    [reply] = [Reply("2", "Ten.", None, 7.0, 1)]
    asked = Asked("1", TEXTS[0], 2, 2, 3.0, 4.0, ["Your age?"], ["1", "4"], [reply], 1)
    topic = Topic(0, "a, b", ("a", "b"), ("a b",), ("1",), 1, None, {"2024-01": 1})
    topics = FoundTopics((topic,), (), {"2024-01": 1})

    def suggest(message, top_k, author):
        one = Suggestion("Ten.", 0.5, 1.0, top_k, "Your age?", 0.9, "2", {"author": author})
        return Suggested(message, [one], 0.4, is_good=True)

    explored = Explored(
        "chat.zip", "index", asked=orjson.dumps([asked]), topics=orjson.dumps(topics), ids=["1"],
        suggest=suggest,
    )  # fmt: skip
    app = create_app(model, index=TextIndex(folder), explored=lambda: explored)
    with running_app(app) as started:
        yield started


ASKED = {
    "/info", "/health", "/metrics", "/corpus", "/asked", "/topics", "/points", "/v1/models",
    "/v1/models/{name}",
}  # fmt: skip
"""By GET."""


@pytest.mark.parametrize("path", sorted(ROUTES - ASKED))
def test_its_examples_are_answered(api, server, indexed, path):
    body = api["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    content = example(api, body)
    content.pop("model", None)
    answer = (indexed if path in OF_AN_INDEX else server).client.post(path, json=content)
    assert answer.status_code == 200, answer.text
    TypeAdapter(list | dict).validate_json(answer.content)


def test_it_has_no_page_with_foreign_scripts(server):
    assert server.client.get("/docs").status_code == 404
    assert server.client.get("/redoc").status_code == 404


def test_answers_have_the_form_that_it_states(server, indexed):
    """Routes write their JSON themselves, so it is compared with the stated models."""
    stated = {
        (method, route.path): TypeAdapter(route.response_model)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema and route.response_model
        for method in route.methods
    }
    bodies = {
        "/embed": {"inputs": "a"},
        "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
        "/rerank": {"query": "a", "texts": ["b"], "return_text": True},
        "/tokenize": {"inputs": "a b"},
        "/rank": {"message": "a", "responses": ["b"]},
        "/search": {"queries": "a"},
        "/texts": {"name": "a.txt", "content": "YQ=="},
        "/explain": {"first": "a", "second": "b"},
        "/read": {"queries": ["a", "b"]},
        "/unknown": {"inputs": ["a", "b"]},
        "/map": {"inputs": ["a", "b"]},
        "/similar": {"id": "1"},
        "/around": {"id": "1"},
        "/messages": {"rows": [0]},
        "/suggest": {"message": "a", "top_k": 1},
        "/v1/embeddings": {"input": "a"},
    }
    assert {path for method, path in stated if method == "POST"} == set(bodies)
    for (method, path), adapter in stated.items():
        name = path.replace("{name}", "rejoinder-small")
        asked = (indexed if path in OF_AN_INDEX else server).client
        answer = asked.request(method, name, json=bodies.get(path))
        assert answer.status_code == 200
        value = adapter.validate_json(answer.content)
        answered = adapter.dump_python(value, mode="json", exclude_none=path == "/rerank")
        assert answered == answer.json()
