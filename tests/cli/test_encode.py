"""`rejoinder encode --out`: killed and resumed, compressed input, long lines."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model

LINES = 20_000
"""More than two chunks."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with models and lines."""
    folder = tmp_path_factory.mktemp("place")
    write_model(folder / "model", dan_model())
    write_model(folder / "bilstm", bilstm_model())
    lines = (f"hello number {row} très\n" for row in range(LINES))
    (folder / "lines").write_text("".join(lines), "utf-8")
    return folder


@pytest.fixture
def run(call, place, monkeypatch):
    """Runs `rejoinder encode` with a model, in its folder."""
    monkeypatch.chdir(place)
    return partial(call, "encode", "--model", "model")


@pytest.mark.parametrize(
    ("suffix", "number", "status"),
    [
        (".npy", signal.SIGKILL, -9),
        (".parquet", signal.SIGTERM, 143),
        pytest.param(".jsonl", signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_a_killed_command_is_resumed_to_the_byte(place, run, suffix, number, status):
    out, whole = place / f"e{suffix}", place / f"whole{suffix}"
    with subprocess.Popen(
        [sys.executable, "-m", "rejoinder", "encode", "-m", "model", "-", "--out", out.name],
        cwd=place,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        content = (place / "lines").read_bytes()
        running.stdin.write(
            content[: len(content) * 2 // 3]
        )  # more than one chunk; more is to come
        running.stdin.flush()
        state = place / f".e{suffix}.unfinished" / "state.json"
        deadline = time.monotonic() + 120
        while not state.exists():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        running.stdin.close()
        assert running.wait(120) == status
        said = running.stderr.read().decode()
    assert not out.exists()
    if number != signal.SIGKILL:
        assert "8,192 sentences are kept; the same command with --resume continues" in said
    status, _, said = run("--sentences", "lines", "--out", out.name)
    assert (status, said.count("\n")) == (2, 1)
    assert re.search("8,192 .*--resume.*--overwrite", said)
    status, summary, said = run("--sentences", "lines", "--out", out.name, "--resume", "--json")
    assert (status, json.loads(summary)["resumed"]) == (0, 8_192)
    assert f"{out.name} is resumed after its first 8,192 sentences" in said
    assert run("--sentences", "lines", "--out", whole.name)[0] == 0
    assert out.read_bytes() == whole.read_bytes()
    assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []


def test_an_output_is_not_replaced_unless_told(place, run):
    (place / "mine.npy").write_bytes(b"mine")
    said = "rejoinder: mine.npy exists; name another file, or replace it with --overwrite.\n"
    assert run("hello", "--out", "mine.npy") == (2, "", said)
    assert (place / "mine.npy").read_bytes() == b"mine"
    assert run("hello", "--out", "mine.npy", "--overwrite")[0] == 0
    assert np.load(place / "mine.npy").shape == (1, 5)


def test_json_sums_up_what_was_written(place, run):
    with gzip.open(place / "few.gz", "wt", encoding="utf-8") as file:
        file.write("hello\nzebra\n")
    words = ("--sentences", "few.gz", "--out", "few.npy", "--json", "--overwrite")
    summary = json.loads(run(*words)[1])
    assert summary.pop("seconds") > 0
    assert summary == {
        "path": "few.npy",
        "n": 2,
        "dim": 5,
        "unknown": 1,
        "too_long": 0,
        "resumed": 0,
        "left_out": {},
    }


def test_a_pipe_is_written(place, run):
    os.mkfifo(place / "pipe.npy")
    with subprocess.Popen(["cat", "pipe.npy"], cwd=place, stdout=subprocess.PIPE) as reader:
        assert run("hello", "you", "--out", "pipe.npy")[0] == 0
        content = reader.communicate()[0]
    assert content.startswith(b"\x93NUMPY")
    assert re.search("pipe.npy .*--resume", run("hello", "--out", "pipe.npy", "--resume")[2])
    (place / "pipe.npy").unlink()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "more than 40 tokens in 1 of 2 sentences: the rest was not read"),
        pytest.param(
            ["--on-too-long", "split"],
            "1 of 2 sentences: each is the mean of pieces of 40 tokens",
            marks=pytest.mark.slow,
        ),
        pytest.param(["--on-too-long", "error"], "line 2 has 60 tokens", marks=pytest.mark.slow),
    ],
)
def test_long_lines_are_told(run, words, said):
    text = f"cat\n{'cat dog ' * 30}\n"
    status, _, told = run("--model", "bilstm", *words, stdin=text.encode())
    assert said in told
    assert told.count("\n") == 1
    assert status == (2 if "error" in words else 0)
