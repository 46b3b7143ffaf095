"""Slow clients, many clients, foreign hosts, and what the server logs."""

import logging
import socket
import sys
from contextlib import suppress

import pytest

from rejoinder.errors import InputError
from rejoinder.index.folder import TextIndex
from rejoinder.index.indexing import Index
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.serve.app import create_app
from rejoinder.serve.server import Limits, OncePerMinute, ServerSettings
from serving import TEXTS, running, running_app

HALF = b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"


def connected(server, content=b""):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    connection.sendall(content)
    return connection


@pytest.mark.parametrize("content", [b"", b"GET /health HTT", HALF])
def test_a_request_that_takes_too_long_is_cut_off(model, content):
    with running_app(create_app(model), Limits(100, request_seconds=0.2)) as server:
        with connected(server, content) as connection, suppress(ConnectionResetError):
            assert connection.recv(100) == b""
        assert server.client.get("/health").status_code == 200


def test_half_sent_requests_make_room_for_others(model):
    with running_app(create_app(model), Limits(4)) as server:
        half = [connected(server, HALF) for _ in range(40)]
        for _ in range(5):
            assert server.client.get("/health", headers={"Connection": "close"}).status_code == 200
        for connection in half:
            connection.close()


def test_a_client_that_reads_nothing_is_cut_off(model):
    with running_app(create_app(model), Limits(100, answer_seconds=0.2)) as server:
        body = b'{"inputs": [%s]}' % b", ".join([b'"hello"'] * 2_000)
        request = (
            b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        with connected(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            with pytest.raises(OSError, match=r"reset|pipe"):
                connection.sendall(request * 10_000)  # until the server gives up
        assert server.client.get("/health").status_code == 200


LOOPBACK = ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1.:80",
            "127.8.9.10:8080", "[::1]", "[::1]:8080"]  # fmt: skip
STRANGE = ["evil.example", "127.0.0.1.evil.example", "128.0.0.1", "localhost.evil.example", "[::2]",
           "", "127.0.0.1@evil.example"]  # fmt: skip


def test_only_names_of_this_machine_are_served_on_the_loopback(model):
    with running(model, ServerSettings(allowed_hosts=("Search.example.org",))) as server:

        def status(host):
            return server.client.get("/health", headers={"Host": host}).status_code

        for host in (*LOOPBACK, "search.EXAMPLE.org.", "search.example.org:8080"):
            assert status(host) == 200, host
        for host in STRANGE:
            assert status(host) == 421, host


def test_which_hosts_are_served_follows_from_the_address():
    for address in ("127.0.0.1", "127.0.0.2", "localhost", "::1"):
        settings = ServerSettings(host=address)
        assert settings.serves("localhost")
        assert not settings.serves("evil.example")
    assert ServerSettings(host="0.0.0.0").serves("evil.example")  # noqa: S104
    limited = ServerSettings(host="0.0.0.0", allowed_hosts=("A.b", "[2001:db8::1]"))  # noqa: S104
    assert limited.serves("a.B:80")
    assert limited.serves("[2001:DB8::1]:80")
    assert limited.serves("localhost")
    assert not limited.serves("evil.example")
    for wrong in ("http://a", "a:80", ""):
        with pytest.raises(InputError, match="allowed host"):
            ServerSettings(allowed_hosts=(wrong,))


def test_a_trailing_slash_is_not_redirected(server):
    answer = server.client.post("/embed/", json={"inputs": "a"}, headers={"Host": "localhost"})
    assert (answer.status_code, answer.headers.get("location")) == (404, None)


def test_answers_have_a_limit(server):
    few = server.client.post("/search", json={"queries": ["a"] * 8, "top_k": 10**9})
    assert [len(hits) for hits in few.json()] == [len(TEXTS)] * 8
    many = server.client.post("/tokenize", json={"inputs": "hello " * 150_000})
    assert many.status_code == 422
    assert "100,000" in many.json()["error"]


def test_hits_have_a_limit(model):
    with running(model, texts=["hello"] * 1_000) as server:
        body = {"queries": ["a"] * 200, "top_k": 1_000}
        answer = server.client.post("/search", json=body)
        assert answer.status_code == 422
        assert "100,000" in answer.json()["error"]


def test_an_index_is_searched_as_it_is_now(model, tmp_path):
    made = Index.create(tmp_path / "index", ["hello"], SentenceEncoder(model))
    with running_app(create_app(model, index=TextIndex(tmp_path / "index"))) as server:

        def found():
            [hits] = server.client.post("/search", json={"queries": "hello you"}).json()
            return {hit["text"] for hit in hits}

        assert found() == {"hello"}
        made.add(["hello you"])
        assert found() == {"hello", "hello you"}
        made.delete("1")
        made.compact()
        assert found() == {"hello you"}
        index_json = tmp_path / "index" / "index.json"
        index_json.write_text("{}")
        answer = server.client.post("/search", json={"queries": "hello"})
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text


def test_each_kind_of_fault_is_logged_once_a_minute():
    kept, logger = OncePerMinute(), logging.getLogger("a")

    def passes(said, work):
        try:
            work()
        except ValueError:
            return kept.filter(logger.makeRecord("a", 40, "f", 1, said, (), sys.exc_info()))

    def one():
        raise ValueError("one")

    def other():
        raise ValueError("other")

    faults = [("a", one), ("a", one), ("a", other), ("b", one), ("a", other)]
    assert [passes(*fault) for fault in faults] == [True, False, True, True, False]
