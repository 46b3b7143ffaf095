"""The README from top to bottom, each command in the order in which a reader types it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")
SKIPPED = {
    "pip install": "the environment has it",
    "make ": "has tests of its own",
    "--data data/": "needs data sets that are fetched",
    "adapt run/model": "needs the STS Benchmark",
    "--eval stsb,snli": "runs, but belongs to the block of data sets",
    "spark://": "needs a cluster",
    "torchrun": "needs four hosts",
}
"""Beginnings or parts of commands that are not run, and why. Each is in the README."""


def blocks():
    """All commands and pieces of Python of the page, in order."""
    for kind, code in re.findall(r"```(sh|python)\n(.*?)```", README, re.DOTALL):
        for piece in code.strip().split("\n") if kind == "sh" else [code]:
            yield kind, piece


def reason(command):
    return next((why for part, why in SKIPPED.items() if part in command), None)


def test_every_reason_to_skip_is_in_the_page():
    commands = [piece for kind, piece in blocks() if kind == "sh"]
    assert all(any(part in command for command in commands) for part in SKIPPED)


def test_the_page_runs_from_top_to_bottom(serve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for kind, piece in blocks():
        if kind == "python":
            told = subprocess.run(
                [sys.executable, "-c", piece], cwd=tmp_path, capture_output=True, text=True
            )
            assert told.returncode == 0, told.stderr
            assert told.stdout.splitlines()[-1] == "How old are you?"
        elif reason(piece) is None and "rejoinder serve" in piece:
            address = serve(*piece.partition("#")[0].split()[2:])
            health = f"{address.rstrip('/')}/health"
            with urllib.request.urlopen(health) as answer:  # noqa: S310 -- of this machine
                assert answer.status == 200
        elif reason(piece) is None:
            told = subprocess.run(
                ["bash", "-c", piece], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert told.returncode == 0, f"{piece}\n{told.stdout}\n{told.stderr}"
            ran += 1
    assert ran >= 14


@pytest.mark.parametrize("package", ["torch", "polars", "duckdb", "fastapi", "scipy"])
def test_the_first_screen_needs_no_extra(tmp_path, package):
    kind, command = next(piece for piece in blocks() if piece[1].startswith("rejoinder similarity"))
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = {shlex.split(command)!r};"
        "from rejoinder.cli.main import run; run()"
    )
    assert kind == "sh"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0
