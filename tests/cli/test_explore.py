"""`rejoinder explore`: from an export to a page on this machine."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from export_samples import slack, write
from rejoinder.conversations.explore import MADE_UP

PROGRAM = Path(sys.executable).with_name("rejoinder")


@pytest.fixture
def export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(slack.FILES, tmp_path / "team")


@contextmanager
def started(command):
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def opened(*words, start=("explore", "--no-browser", "-m", "rejoinder-small")):
    """Explores, and returns what was printed and the corpus; it must end with status 0."""
    command = [PROGRAM, *start, *map(str, words)]
    lines = []
    with started(command) as process:
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        assert found, "".join(lines)
        corpus = httpx.get(f"{found[0]}/corpus", trust_env=False).json()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    return "".join(lines), corpus


def test_an_export_becomes_a_page_and_the_next_start_only_opens_it(export):
    printed, corpus = opened(export)
    assert corpus["texts"] == 4
    assert "messages left out: 4" in printed
    assert f"wrote {export}.explore" in printed
    printed, again = opened(export)
    assert again == corpus
    assert "wrote" not in printed
    assert "left out" not in printed
    for folder in (f"{export}.explore", f"{export}.explore/index"):
        served = opened(folder, start=("serve", "--port", "0", "--index"))[1]
        assert served == {**corpus, "name": "team", "command": str(export) + ".explore/index"}


@pytest.mark.slow
def test_without_an_export_a_made_up_one_is_explored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        printed, corpus = opened()
        assert corpus["texts"] > 9_000
    assert "wrote" not in printed
    assert [path.name for path in tmp_path.iterdir()] == [f"{MADE_UP.name}.explore"]


@pytest.mark.slow
def test_an_index_that_was_not_explored_is_served_with_the_command_that_does(call, export):
    assert call("index", export, "--out", "index", "-m", "rejoinder-small")[0] == 0
    serve = ("serve", "--port", "0", "--index")
    printed, corpus = opened("index", start=serve)
    assert "rejoinder explore index" in printed
    assert corpus["found"] == []
    opened("index", start=("explore", "--no-browser"))
    printed, corpus = opened("index", start=serve)
    assert "rejoinder explore" not in printed
    assert corpus["found"][:2] == ["asked", "topics"]
    Path("new.txt").write_text("One more text.\n")
    assert call("index", "add", "index", "new.txt")[0] == 0
    assert "rejoinder explore index" in opened("index", start=serve)[0]


@pytest.mark.parametrize("command", ["explore", pytest.param("serve", marks=pytest.mark.slow)])
def test_other_machines_need_the_key_that_is_made(call, export, command):
    words = ["--model", "rejoinder-small", "--no-browser", "--quiet", export]
    if command == "serve":
        index = export.with_name("index")
        assert call("index", export, "--out", index, "-m", "rejoinder-small")[0] == 0
        words = ["--index", index]
    command = [PROGRAM, command, *map(str, words), "--host", "0.0.0.0", "--port", "0"]  # noqa: S104
    with started(command) as process:
        lines = iter(process.stderr.readline, "")
        printed = next(line for line in lines if "key=" in line)
        if "--quiet" not in words:
            assert "4 messages by 3 authors" in next(lines)
        port, key = re.search(r"http://\S+:(\d+)/\?key=(\S{32})", printed).groups()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert client.get("/health").status_code == 200
            assert client.get("/corpus").status_code == 401
            client.get("/", params={"key": key})
            assert client.get("/corpus").json()["texts"] == 4
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_an_export_becomes_one_file(call, export, tmp_path):
    file = tmp_path / "archive.html"
    command = "explore", export, "-m", "rejoinder-small", "--to", file
    status, _, err = call(*command, "--real-names")
    assert (status, f"wrote {file}: 4 messages" in err, "real names" in err) == (0, True, True)
    assert file.read_text("utf-8").startswith("<!doctype html>")
    status, _, err = call(*command, "--only", "help", "--pseudonyms")
    assert (status, "4 messages, with pseudonyms" in err) == (0, True)
    status, _, err = call(*command, "--only", "hepl")
    assert (status, "help" in err) == (2, True)
    status, _, err = call("explore", export, "--only", "help")
    assert (status, "--to" in err) == (2, True)
    status, _, err = call("explore", export, "--to", file, "--host", "0.0.0.0")  # noqa: S104
    assert (status, "--host" in err) == (2, True)


def test_several_exports_become_one_file(call, export, tmp_path):
    log, file = tmp_path / "help.log", tmp_path / "archive.html"
    log.write_text("[10:00] <ann> Is it open?\n[10:01] <bob> Yes.\n")
    command = "explore", export, log, "-m", "rejoinder-small", "--to", file, "--real-names"
    status, _, err = call(*command)
    assert (status, f"wrote {file}: 6 messages" in err) == (0, True)
    log.write_text("How are you?\n")
    status, _, err = call(*command)
    assert (status, str(log) in err, len(err.strip().splitlines())) == (2, True, 1)


def test_what_can_not_be_explored_is_one_sentence(call, tmp_path, export):
    assert call("explore", tmp_path / "none.zip")[0] == 2
    status, _, err = call("explore", export, "--out", export)
    assert (status, len(err.strip().splitlines())) == (2, 1)
    status, _, err = call("explore", export, "--port", 70_000)
    assert (status, "port" in err) == (2, True)
    assert not export.with_name("team.explore").exists()


@pytest.mark.slow
def test_what_changes_is_read_while_the_page_is_open(tmp_path):
    log = tmp_path / "chat.csv"
    log.write_text("id,text\n1,Is it open?\n")
    command = [PROGRAM, "explore", log, "--columns", "text=text,id=id", "-m", "rejoinder-small"]
    command += ["--no-browser", "--watch"]
    with started(command) as process:
        address = next(filter(None, (re.search(r"http://\S+", line) for line in process.stderr)))
        log.write_text("id,text\n1,Is it open?\n2,Since when?\n")
        assert next(line for line in process.stderr if "new" in line).startswith("1 new, 0 changed")
        corpus = httpx.get(f"{address[0]}/corpus", trust_env=False).json()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert corpus["texts"] == 2
