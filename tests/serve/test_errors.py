"""Errors of requests: malformed bodies, faulty fields, and that nothing makes the server fail."""

import json
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JSON = {"Content-Type": "application/json"}


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
