"""Commands run without what Windows lacks, and where open files can't be replaced (`windows`)."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

HERE = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-P", str(HERE / "windows.py")]


def run(*arguments, **environment):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def succeeds(*arguments):
    told = run(*arguments)
    assert told.returncode == 0, told.stderr
    return told.stdout


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("How old are you?\nWhat is your age?\nI like tea.\n")
    return path


def test_texts_are_encoded(tmp_path, texts):
    for _ in range(2):  # the second replaces the first
        succeeds("encode", texts, "--out", tmp_path / "e.npy", "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.npy", "texts.txt"]


@pytest.mark.slow
def test_an_index_is_made_searched_and_changed(tmp_path, texts):
    index, ids = tmp_path / "index", tmp_path / "ids.txt"
    more = tmp_path / "more.txt"
    more.write_text("Coffee is better.\n")
    ids.write_text("3\n")
    for _ in range(2):
        succeeds("index", "create", texts, "--out", index, "--overwrite")
    for _ in range(3):
        succeeds("index", "add", index, more)
    succeeds("index", "delete", index, ids)
    succeeds("index", "compact", index)
    succeeds("index", "check", index)
    found = succeeds("search", "your age", "--index", index, "--mode", "hybrid", "--top-k", "1")
    assert "What is your age?" in found
    succeeds("index", "add", index, more)  # removes what the ones before had open
    names = {path.name for path in index.iterdir()}
    assert len(names) < 5
    assert not any(name.startswith(".") for name in names)


@pytest.mark.slow
def test_an_export_is_explored(tmp_path):
    source = tmp_path / "WhatsApp Chat with Ann.txt"
    asked = ["Where is the meeting?", "It is in the garden.", "What do we eat?", "Soup, I think."]
    source.write_text(
        "".join(
            f"{1 + at // 4}/3/24, 9:{at:02} - {('Ann', 'Bo')[at % 2]}: {asked[at % 4]}\n"
            for at in range(40)
        )
    )
    for _ in range(2):
        with subprocess.Popen(
            [*COMMAND, "explore", source, "--no-browser"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as server:
            found = (re.search(r"http://\S+", line) for line in server.stdout)
            address = next(filter(None, found))[0]
            with urlopen(address) as page:  # noqa: S310
                assert b"<html" in page.read()
            server.send_signal(signal.SIGTERM)
        assert server.returncode == 0


@pytest.mark.slow
def test_a_file_that_another_program_has_open_is_one_sentence(tmp_path, texts):
    out = tmp_path / "e.npy"
    out.write_text("mine")
    told = run("encode", texts, "--out", out, "--overwrite", HELD=str(out))
    assert told.returncode == 2
    [sentence] = told.stderr.splitlines()
    assert f"{out} can't be written" in sentence
    assert "another program has it open" in sentence
    assert out.read_text() == "mine"
    assert not (tmp_path / ".e.npy.lock").exists()
    succeeds("encode", texts, "--out", out, "--overwrite")


@pytest.mark.parametrize("name", ["aux.txt", "a?.npy", "con", "e.npy."])
def test_a_name_that_windows_keeps_is_one_sentence(tmp_path, texts, name):
    told = run("encode", texts, "--out", tmp_path / name)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert name in told.stderr
    assert list(tmp_path.iterdir()) == [texts]
