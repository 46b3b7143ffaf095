"""Settings, slow clients, many clients, and what the server logs."""

import logging
import socket
import sys
from contextlib import suppress

import pytest

from rejoinder.errors import InputError
from rejoinder.serve.app import create_app
from rejoinder.serve.server import Limits, OncePerMinute, ServerSettings
from serving import running_app

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
    assert "a-key-of-8" not in repr(ServerSettings(api_key="a-key-of-8"))


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
