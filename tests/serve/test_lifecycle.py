"""The command `rejoinder serve` as a process: how it starts, and how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from rejoinder.cli import main
from rejoinder.serve.server import ServerSettings, open_socket
from serving import running

PROGRAM = Path(sys.executable).with_name("rejoinder")
KEY = "a-key-that-nobody-guesses"


@pytest.fixture
def start(tmp_path):
    """Starts a server on a free port; returns the process and its address."""
    processes = []

    def run(*words, model="rejoinder-small", **variables):
        process = subprocess.Popen(
            [PROGRAM, "serve", model, "--port", "0", *map(str, words)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
            cwd=tmp_path,
        )
        processes.append(process)
        line = process.stderr.readline()
        address = re.fullmatch(rf"rejoinder: {model} at (http://\S+)\n", line)
        assert address, line
        return process, address[1]

    yield run
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def fails(monkeypatch, capsys):
    """Runs `rejoinder serve` in this process; it must end with status 2. Returns its error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["rejoinder", "serve", *words])
        with pytest.raises(SystemExit) as stop:
            main.run()
        assert stop.value.code == 2
        return capsys.readouterr().err

    return run


def connect(address):
    port = int(address.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def half_a_request(address):
    """Sends half of a request, and returns its connection when the server waits for the rest.

    A connection whose request the server has not seen yet is idle: a server that stops closes it.
    """
    connection = connect(address)
    head = "POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += "Expect: 100-continue\r\n"
    connection.sendall(f'{head}Content-Length: 17\r\n\r\n{{"inputs"'.encode())
    told = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert connection.recv(len(told), socket.MSG_WAITALL) == told
    return connection


def wait_until_closed(address):
    """Returns when the server accepts no more connections."""
    with suppress(ConnectionError):
        while True:
            connect(address).close()


def received(connection):
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def test_requests_under_way_finish_and_new_ones_are_not_accepted(start):
    process, address = start()
    with connect(address) as stranger:
        stranger.sendall(b"no HTTP\r\n\r\n")  # nothing of it goes to the log
        assert received(stranger).startswith(b"HTTP/1.1 400")
    with half_a_request(address) as connection:
        assert httpx.get(f"{address}/metrics").status_code == 200
        process.terminate()
        wait_until_closed(address)
        assert process.poll() is None
        connection.sendall(b': "hi!"}')
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.rstrip().endswith(b"]]")
    assert process.wait(120) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_several_processes_answer_on_one_port(start):
    process, address = start("--workers", "2")
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(httpx.get, [f"{address}/info"] * 40)]
    assert {answer.status_code for answer in answers} == {200}
    process.terminate()
    assert process.wait(120) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the processes of another")
def test_a_process_that_is_killed_ends_the_server(start):
    process, address = start("--workers", "2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    assert process.wait(120) == 2
    assert process.stderr.read().count("\n") == 1
    with pytest.raises(ConnectionError):
        connect(address)


def test_a_second_interrupt_ends_the_server_at_once(start):
    process, address = start("--drain-seconds", "3600")
    with half_a_request(address):
        process.send_signal(signal.SIGINT)
        wait_until_closed(address)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == -signal.SIGINT


def test_a_request_that_never_ends_does_not_keep_the_server(model):
    with running(model, ServerSettings(drain_seconds=0.1)) as server:
        connection = half_a_request(server.address)
        assert server.client.get("/health").status_code == 200
    connection.close()


def test_the_key_and_the_texts_come_from_files(start, tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "texts.txt").write_text("How old are you?\nI like pizza.\n")
    _, address = start("--texts", "texts.txt", "--api-key-file", "key")
    assert httpx.get(f"{address}/info").status_code == 401
    body, headers = {"queries": "What is your age?"}, {"Authorization": f"Bearer {KEY}"}
    [hits] = httpx.post(f"{address}/search", json=body, headers=headers).json()
    assert hits[0]["text"] == "How old are you?"


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["--port", "70000"], {}, "65,535"),
        (["--workers", "2", "--texts", "-"], {}, "--workers"),
        (["--host", "203.0.113.9"], {}, "203.0.113.9"),
        (["--texts", "missing.txt"], {}, "missing.txt"),
        (["--api-key-file", "missing"], {}, "--api-key-file missing"),
        ([], {"REJOINDER_API_KEY": "short"}, "8"),
        (["--cors-origin", "example.org"], {}, "'example.org'"),
        (["no-such-model"], {}, "no-such-model"),
    ],
)
def test_a_faulty_start_is_one_line(words, variables, said, fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    error = fails(*words)
    assert said in error
    assert error.count("\n") == 1


def test_a_port_that_is_taken(fails, server):
    error = fails("--port", str(server.port))
    assert f"127.0.0.1 port {server.port}" in error
    assert error.count("\n") == 1


def test_a_missing_package_is_named_with_the_extra(fails, monkeypatch):
    monkeypatch.setattr("rejoinder.errors.find_spec", lambda _: None)
    error = fails()
    assert "fastapi" in error
    assert "[serve]" in error


def test_small_answers_are_sent_at_once():
    with (
        open_socket("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_scorer_orders_texts(start, fails):
    _, address = start("--scorer", model="rejoinder-base")
    body = {"query": "He is playing chess.", "texts": ["He never plays chess.", "He plays chess."]}
    hits = httpx.post(f"{address}/rerank", json={**body, "raw_scores": True}).json()
    assert [hit["index"] for hit in hits] == [1, 0]
    assert hits[0]["score"] > 4
    assert "rejoinder-base" in fails("rejoinder-small", "--scorer", "--port", "0")
