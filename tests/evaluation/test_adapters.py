"""Encoders on a server, against a test server that misbehaves in every way we know."""

import socket
from types import SimpleNamespace

import numpy as np
import pytest

from embedding_server import running
from rejoinder.api.evaluation import load_encoder
from rejoinder.errors import InputError, MissingExtraError
from rejoinder.evaluation import adapters
from rejoinder.evaluation.adapters import OPENAI, TEI, RemoteEncoder, open_openai, open_tei
from rejoinder.inference.encoder import SentenceEncoder

TEXTS = [
    "How old are you?",
    "très 😀",
    "",
    "What is\nyour age?",
    "\ud83d half",
    *map(str, range(70)),
]


@pytest.fixture(scope="module")
def local():
    return SentenceEncoder()


@pytest.fixture
def server(local, monkeypatch):
    monkeypatch.setattr(adapters, "_PAUSE", 0.01)
    for name in ("REJOINDER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with running(local) as one:
        yield one


@pytest.fixture(params=["openai", "tei"])
def encoder(request, server):
    return opened(request.param, server)


def opened(wire, server):
    name = f"openai:base@{server.address}" if wire == "openai" else f"tei:{server.address}"
    return load_encoder(name)


def test_the_embeddings_are_those_of_the_local_encoder(local, encoder, server):
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, local.encode(TEXTS), atol=1e-6)
    assert encoder.encode([]).shape[0] == 0
    sizes = [len(body.get("input") or body.get("inputs")) for body in server.requests]
    assert sizes == ([75] if "input" in server.requests[0] else [32, 32, 11])


def test_the_path_is_added_where_the_address_has_none(server):
    for address in (server.address, f"{server.address}/", f"{server.address}/v1"):
        assert open_openai(f"base@{address}").encode(["a"]).shape == (1, 512)
    assert [body["model"] for body in server.requests] == ["base"] * 3
    with pytest.raises(InputError, match=r"/v2/embeddings .*404"):
        open_openai(f"base@{server.address}/v2").encode(["a"])


def test_it_describes_itself_by_model_and_address(server):
    assert opened("openai", server).describe() == {"name": f"openai:base@{server.address}"}
    assert opened("tei", server).describe() == {"name": f"tei:{server.address}"}
    assert server.requests == []


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "0"}, b""),
        (500, {}, b"oops"),
        (503, {"Retry-After": "0"}, b'{"error": "loading"}'),
        (408, {}, b""),
    ],
)
def test_what_passes_is_tried_again(local, encoder, server, fault):
    server.faults = [fault] * 3
    np.testing.assert_allclose(encoder.encode(["hello"]), local.encode(["hello"]), atol=1e-6)
    assert len(server.requests) == 4


def test_broken_connections_are_tried_again(encoder, server):
    server.breaks = 2
    assert encoder.encode(["hello"]).shape == (1, 512)
    server.breaks = 100
    with pytest.raises(InputError, match="6 times"):
        encoder.encode(["hello"])


def test_what_lasts_is_said_in_the_words_of_the_server(encoder, server):
    server.faults = [(503, {}, b'{"error": {"message": "no\\nmodel \\u001b[31m is loaded"}}')] * 99
    with pytest.raises(InputError, match=r"503.*no model \[31m is loaded"):
        encoder.encode(["hello"])
    assert len(server.requests) == 6
    server.faults = [(429, {"Retry-After": "3600"}, b"")]
    with pytest.raises(InputError, match="429"):
        encoder.encode(["hello"])
    assert len(server.requests) == 7  # an hour is too long to wait


def test_the_server_says_how_long_to_wait():
    def pause(value, number=1):
        error = adapters.RefusedError(429, b"", value)
        outcome = SimpleNamespace(exception=lambda: error)
        return adapters._pause(SimpleNamespace(outcome=outcome, attempt_number=number))

    assert pause("7") == 7
    assert [pause("", number) for number in (1, 2, 5)] == [1, 2, 16]
    assert pause("soon", 3) == 4


def test_a_host_that_is_not_there_is_one_sentence():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = rf"http://127\.0\.0\.1:{port}/embed can't be reached: .*refused"
    with pytest.raises(InputError, match=said):
        open_tei(f"http://127.0.0.1:{port}").encode(["hello"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1:], "2 embeddings for 3 texts|shape .2, 512. for 3"),
        (lambda rows: [*rows, rows[0]], "4 embeddings for 3 texts|shape .4, 512. for 3"),
        (lambda rows: [rows[0], rows[1][:7], rows[2]], "different lengths.*7 to 512"),
        (lambda rows: [[] for _ in rows], "0 numbers"),
        (lambda rows: [rows[0], [float("nan")] * 512, rows[2]], "JSON: NaN"),
        (lambda rows: [rows[0], [None] * 512, rows[2]], "returned None"),
        (
            lambda rows: [rows[0], [1e39] * 512, rows[2]],
            "1 .'b'. .*not finite",
        ),
        (lambda rows: [["1.0"] * 4 for _ in rows], "returned strings"),
        (lambda rows: [row[0] for row in rows], r"array of shape \(3,\)"),
    ],
)
def test_wrong_vectors_are_refused(encoder, server, change, said):
    server.change = change
    with pytest.raises(InputError, match=said):
        encoder.encode(["a", "b", "c"])


@pytest.mark.parametrize(
    "answer",
    [
        lambda _tree: {"error": "no"},
        lambda _tree: {"data": [{"embedding": [1.0]}]},
        lambda _tree: {"data": 7},
        lambda _tree: [{"index": 0}],
        lambda _tree: "text",
        lambda _tree: None,
    ],
)
def test_an_answer_of_another_form_is_refused(encoder, server, answer):
    server.answer = answer
    with pytest.raises(InputError, match=r"another form|one row per sentence"):
        encoder.encode(["a"])


def test_a_page_is_no_answer(encoder, server):
    server.faults = [(200, {"Content-Type": "text/html"}, b"<html>hello</html>")]
    with pytest.raises(InputError, match="JSON"):
        encoder.encode(["a"])
    server.faults = [(307, {"Location": "http://elsewhere/"}, b"")]
    with pytest.raises(InputError, match="307"):
        encoder.encode(["a"])


def test_an_answer_without_end_is_cut_off(encoder, server, monkeypatch):
    monkeypatch.setattr(adapters, "MOST_BYTES", 1_000)
    with pytest.raises(InputError, match="1,000 bytes"):
        encoder.encode(["hello"])
    assert len(server.requests) == 1


def test_another_width_later_is_refused(encoder, server):
    encoder.encode(["a"])
    server.change = lambda rows: [row[:7] for row in rows]
    with pytest.raises(InputError, match=r" 7 numbers.* 512"):
        encoder.encode(["b"])


def test_too_large_a_batch_is_halved(local, encoder, server):
    server.most = 9
    np.testing.assert_allclose(encoder.encode(TEXTS), local.encode(TEXTS), atol=1e-6)
    server.requests.clear()
    encoder.encode(TEXTS)  # a size that works is remembered
    sizes = [len(body.get("input") or body.get("inputs")) for body in server.requests]
    assert max(sizes) <= server.most


def test_a_text_that_is_refused_is_named(encoder, server):
    server.refuses = "31"
    with pytest.raises(InputError, match=r"422.*one of the inputs is refused.*'31'"):
        encoder.encode(TEXTS)


def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "other-secret")
    opened("openai", server).encode(["a"])
    opened("tei", server).encode(["a"])
    monkeypatch.setenv("REJOINDER_API_KEY", "secret")
    opened("openai", server).encode(["a"])
    opened("tei", server).encode(["a"])
    assert server.keys == ["Bearer other-secret", None, "Bearer secret", "Bearer secret"]


def test_a_key_that_is_refused_is_not_shown(server, monkeypatch):
    monkeypatch.setenv("REJOINDER_API_KEY", "secret")
    server.faults = [(401, {}, b'{"error": {"message": "wrong key: secret"}}')]
    said = r"answers 401: wrong key: …\. A key is read from REJOINDER_API_KEY or OPENAI_API_KEY"
    with pytest.raises(InputError, match=said):
        opened("openai", server).encode(["a"])


def test_a_key_is_sent_to_other_machines_by_https_only(monkeypatch):
    monkeypatch.setenv("REJOINDER_API_KEY", "secret")
    for address, sent in (
        ("http://gpu-box:8080", False),
        ("https://gpu-box:8080", True),
        ("http://localhost:8080", True),
        ("http://[::1]:8080", True),
    ):
        for wire in (OPENAI, TEI):
            client = RemoteEncoder(wire, "m", address)._client()
            assert ("Authorization" in client.headers) is sent


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai:base", "openai:MODEL@URL"),
        ("openai:base@localhost:80", "openai:MODEL@URL"),
        ("openai:@http://h", "openai:MODEL@URL"),
        ("openai:a@http://me:pass@h", "REJOINDER_API_KEY"),
        ("tei:http://me:pass@h", "REJOINDER_API_KEY"),
        ("tei:localhost:80", "'localhost:80'"),
        ("tei:ftp://h", "ftp://h.*http"),
        ("tei:http://h/?q=1", "q=1"),
        ("tei:http://h:port", "port"),
        ("tei:", "http://HOST:PORT"),
    ],
)
def test_what_is_no_address_is_refused(name, said):
    with pytest.raises(InputError, match=said) as refused:
        load_encoder(name)
    assert "pass@" not in str(refused.value)


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("rejoinder.errors.find_spec", lambda _package: None)
    with pytest.raises(MissingExtraError, match=r"rejoinder\[data\]"):
        open_tei("http://localhost")


def test_embeddings_are_kept_as_they_come(local, encoder, server, tmp_path):
    encoder.cache_in(tmp_path / "new" / "cache")
    encoder._batch = 32
    server.refuses = "69"  # in the last batch
    with pytest.raises(InputError, match="422"):
        encoder.encode(TEXTS)
    server.requests.clear()
    server.refuses = "\0"
    np.testing.assert_allclose(encoder.encode(TEXTS), local.encode(TEXTS), atol=1e-6)
    asked = [text for body in server.requests for text in (body.get("input") or body.get("inputs"))]
    assert len(asked) <= 11
    server.requests.clear()
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]), local.encode(TEXTS[::-1]), atol=1e-6)
    assert server.requests == []


def test_encoders_share_a_cache_without_mixing(server, tmp_path):
    one, two = (open_openai(f"{model}@{server.address}") for model in ("one", "two"))
    for encoder in (one, two, one, two):
        encoder.cache_in(tmp_path)
        encoder.encode(["hello"])
    asked = [body["model"] for body in server.requests if body["input"] == ["hello"]]
    assert asked == ["one", "two"]


def test_a_server_whose_model_has_changed_is_asked_again(server, tmp_path):
    open_tei(server.address).cache_in(tmp_path)
    first = open_tei(server.address)
    first.cache_in(tmp_path)
    first.encode(["hello"])
    server.change = lambda rows: [row[:7] for row in rows]
    second = open_tei(server.address)
    second.cache_in(tmp_path)
    assert second.encode(["hello", "you"]).shape == (2, 7)
    assert first.encode(["hello"]).shape == (1, 512)
