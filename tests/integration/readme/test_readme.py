"""The README from top to bottom, each command in the order in which a reader types it.

Each `pip install` of the package begins a new, empty environment with what that line names, so that
a command whose extra the page does not name fails.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")
SKIPPED = {
    "make ": "tested elsewhere",
    "--data data/": "needs data sets that are fetched",
    "adapt run/model": "needs the STS Benchmark",
    "--eval stsb,snli": "runs, but belongs to the block of data sets",
    "[extract,train,spark]": "its commands need a cluster",
    "spark://": "needs a cluster",
    "torchrun": "needs four hosts",
    "download.pytorch.org": "not every machine reaches it",
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


def install(folder, extras):
    """Makes an empty environment with the wheel under test and its extras; returns its programs."""
    origin = json.loads(distribution("rejoinder").read_text("direct_url.json"))
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin/python", "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    pip += ["--no-compile", "-c", ROOT / "constraints.txt", f"rejoinder{extras} @ {origin['url']}"]
    subprocess.run(pip, check=True)
    return folder / "bin"


def test_the_page_runs_from_top_to_bottom(serve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("examples", "models"):
        shutil.copytree(ROOT / name, tmp_path / name)
    environment = {**os.environ}
    programs = None
    ran = 0
    for kind, piece in blocks():
        if re.match(r"pip install '?\.[^/]", piece) and reason(piece) is None:
            extras = re.match(r"pip install '?\.(\[[\w,]+\])?'?", piece)[1] or ""
            programs = install(tmp_path / f"environment{ran}", extras)
            environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        elif kind == "python":
            told = subprocess.run(
                [programs / "python", "-c", piece], cwd=tmp_path, capture_output=True, text=True
            )
            assert told.returncode == 0, told.stderr
            assert told.stdout.splitlines()[-1] == "How old are you?"
        elif reason(piece) is None and re.match("rejoinder (serve|explore)(?!.* --to)", piece):
            command, *words = piece.partition("#")[0].split()[1:]
            words += ["--no-browser"] if command == "explore" else []
            address = serve(*words, program=programs / "rejoinder", command=command)
            health = f"{address.rstrip('/')}/health"
            with urllib.request.urlopen(health) as answer:  # noqa: S310 -- of this machine
                assert answer.status == 200
        elif reason(piece) is None:
            told = subprocess.run(
                ["bash", "-c", piece], cwd=tmp_path, env=environment, capture_output=True,
                text=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert told.returncode == 0, f"{piece}\n{told.stdout}\n{told.stderr}"
            ran += 1
    assert ran >= 14
