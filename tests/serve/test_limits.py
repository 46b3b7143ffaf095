"""Limits, statuses, the key, CORS, and malformed bodies."""

import json
import re
import socket
import threading

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.errors import InputError
from rejoinder.serve.server import ServerSettings
from serving import running

KEY = "a-key-that-nobody-guesses"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def strict(model):
    """A server with a key, small limits and an origin."""
    given = ServerSettings(
        api_key=KEY,
        max_texts=4,
        max_queue=8,
        max_body_bytes=1_000,
        cors_origins=("https://example.org",),
    )
    with running(model, given) as started:
        started.client.headers["Authorization"] = f"Bearer {KEY}"
        yield started


def test_a_body_that_is_too_long_is_413(strict):
    inside = b'{"inputs": "%s"}' % (b"a" * 900)
    assert strict.client.post("/embed", content=inside, headers=JSON).status_code == 200
    for length in (1_001, 3_000, 100_000):
        answer = strict.client.post("/embed", content=b"a" * length, headers=JSON)
        assert answer.status_code == 413
        assert "1,000 bytes" in answer.json()["error"]
    chunked = strict.client.post("/v1/embeddings", content=iter([b"a" * 400] * 4), headers=JSON)
    assert chunked.status_code == 413
    assert "1,000 bytes" in chunked.json()["error"]["message"]


@pytest.mark.parametrize("length", [b"-1", b"abc", b"+5", b"\xb2", b"", b"9" * 30, b"9" * 5_000])
def test_a_malformed_length_is_refused(strict, length):
    head = b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {KEY}\r\n".encode()
    with socket.create_connection(("127.0.0.1", strict.port), timeout=120) as connection:
        connection.sendall(head + b"Content-Length: " + length + b"\r\n\r\n{}")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65_536)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.1 422")), answer


def test_too_many_texts_are_422_and_name_the_field(strict):
    answer = strict.client.post("/embed", json={"inputs": ["a"] * 5})
    assert answer.status_code == 422
    assert answer.json()["error_type"] == "Validation"
    assert re.match(r"inputs: .*\b5\b.*\b4\b", answer.json()["error"])


def test_a_full_queue_is_429_with_the_seconds_to_wait(strict):
    answers = []

    def ask():
        answers.append(strict.client.post("/embed", json={"inputs": ["a"] * 4}))

    waiting = [threading.Thread(target=ask) for _ in range(2)]
    with strict.held():
        for thread in waiting:
            thread.start()
        while strict.service.batcher.waiting < 8:
            threading.Event().wait(0.01)
        refused = strict.client.post("/embed", json={"inputs": "a"})
        openai = strict.client.post("/v1/embeddings", json={"input": "a"})
    for thread in waiting:
        thread.join(120)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error_type"] == "Overloaded"
    assert openai.json()["error"]["type"] == "rate_limit_error"
    assert [answer.status_code for answer in answers] == [200, 200]
    assert strict.client.post("/embed", json={"inputs": "a"}).status_code == 200


@pytest.mark.parametrize(
    "header", [None, "", KEY, "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", b"\xff"]
)
def test_without_the_key_it_is_401(strict, header):
    headers = {} if header is None else {"Authorization": header}
    with httpx.Client(base_url=strict.address, headers=headers) as client:
        assert client.post("/", json={"inputs": "a"}).status_code == 401
        answer = client.post("/embed", json={"inputs": "a"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error_type"] == "Unauthorized"
        assert KEY not in answer.text
        openai = client.get("/v1/models")
        assert openai.status_code == 401
        assert openai.json()["error"]["code"] == "invalid_api_key"
        assert client.get("/metrics").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200


def test_every_route_but_health_and_the_page_needs_the_key(strict):
    with httpx.Client(base_url=strict.address) as client:
        paths = strict.client.get("/openapi.json").json()["paths"]
        asked = {(method, path) for path, item in paths.items() for method in item}
        asked |= {("get", "/openapi.json"), ("post", "/health"), ("post", "/"), ("put", "/")}
        for method, path in asked - {("get", "/health")}:
            assert client.request(method, path).status_code == 401, (method, path)


def test_cors_is_off_unless_asked_for(server, strict):
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    name = "access-control-allow-origin"
    assert name not in server.client.options("/embed", headers=asked).headers
    assert name not in server.client.get("/health", headers=asked).headers
    answer = strict.client.options("/embed", headers=asked)
    assert answer.headers[name] == "https://example.org"
    other = strict.client.get("/health", headers={"Origin": "https://example.com"})
    assert name not in other.headers


def test_unknown_paths_and_methods_are_json(server):
    answer = server.client.get("/nowhere")
    assert (answer.status_code, answer.json()["error_type"]) == (404, "Validation")
    assert "/nowhere" in answer.json()["error"]
    answer = server.client.get("/embed")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "message" in server.client.post("/v1/models").json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/embed", {}, "inputs: "),
        ("/embed", {"inputs": {"a": 1}}, "inputs: "),
        ("/embed", {"inputs": "a", "normalize": "perhaps"}, "normalize: "),
        ("/embed", {"inputs": "a", "prompt_name": "query"}, "prompt_name: "),
        ("/embed", {"inputs": "a", "truncation_direction": "Left"}, "truncation_direction: "),
        ("/similarity", {"inputs": {"sentences": ["a"]}}, "inputs.source_sentence: "),
        ("/rerank", {"query": 1, "texts": ["a"]}, "query: "),
        ("/tokenize", {"inputs": "a", "zz": 1}, "zz: "),
        ("/rank", {"message": "a", "responses": ["b"], "top_k": 0}, "top_k: "),
        ("/rank", {"message": "a", "responses": ["b"], "top_k": 1.5}, "top_k: "),
        ("/search", {"queries": ["a", 2]}, "queries: "),
        ("/map", {"inputs": []}, "inputs: "),
    ],
)
def test_a_faulty_field_is_named(server, path, body, said):
    answer = server.client.post(path, json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(said)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"null", 422),
        (b"[]", 422),
        (b'"inputs"', 422),
        (b'{"inputs": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"inputs": %s}' % (b"9" * 5_000), 400),
        (b'{"inputs": "a", "normalize": NaN}', 422),
        (b'{"inputs": "a", "dimensions": 1e999}', 422),
        (b'{"inputs": "a", "x\\ud800": 1}', 422),
        (b'{"inputs": "\\ud800"}', 200),
        (b'{"inputs": "\xed\xa0\x80"}', 200),
        (b'\xef\xbb\xbf{"inputs": "a"}', 200),
    ],
)
def test_malformed_bodies(server, content, status):
    answer = server.client.post("/embed", content=content, headers=JSON)
    assert answer.status_code == status
    if status != 200:
        assert set(answer.json()) == {"error", "error_type"}
        assert "Traceback" not in answer.text


def test_a_form_is_refused(server):
    answer = server.client.post("/embed", data={"inputs": "a"})
    assert answer.status_code == 422
    assert "application/json" in answer.json()["error"]


PATHS = ["/embed", "/similarity", "/rerank", "/tokenize", "/rank", "/search", "/texts", "/read",
         "/explain", "/unknown", "/map", "/similar", "/around", "/v1/embeddings"]  # fmt: skip
NAMES = ["inputs", "input", "query", "texts", "message", "responses", "queries", "first", "second",
         "source_sentence", "sentences", "top_k", "dimensions", "model", "normalize"]  # fmt: skip
TEXT = st.text(st.characters(), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | TEXT, inner, max_size=6)
    ),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), body=st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_no_json_makes_the_server_fail(server, path, body):
    content = json.dumps(body).encode()
    answer = server.client.post(path, content=content, headers=JSON)
    assert answer.status_code in (200, 400, 404, 422)
    answer.json()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), content=st.binary(max_size=60))
def test_no_bytes_make_the_server_fail(server, path, content):
    answer = server.client.post(path, content=content, headers=JSON)
    assert answer.status_code in (400, 422)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(min_size=1, max_size=200)
    | st.binary(max_size=80).map(lambda tail: b"POST /embed HTTP/1.1\r\n" + tail + b"\r\n\r\n")
)
def test_malformed_http_ends_only_its_connection(server, content):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65_536)
    assert not answer or answer.startswith(b"HTTP/1.1 4"), answer
    assert server.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"port": 70_000}, "port"),
        ({"max_batch": 0}, "max_batch"),
        ({"max_queue": 100}, "max_texts"),
        ({"api_key": "short"}, "API key"),
        ({"api_key": "with a space"}, "API key"),
        ({"cors_origins": ("example.org",)}, "example.org"),
        ({"cors_origins": ("https://example.org/",)}, "example.org"),
    ],
)
def test_settings_that_contradict_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        ServerSettings(**values)


def test_the_key_is_not_shown():
    assert KEY not in repr(ServerSettings(api_key=KEY))
