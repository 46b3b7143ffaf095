"""The commands that docs/index.md installs with, given the wheel where they name the checkout."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import httpx
import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/index.md"
WHEEL = json.loads(distribution("rejoinder").read_text("direct_url.json"))["url"]
COMMANDS = {
    words[0]: words
    for line in re.findall(r"(?m)^\|.*\| `(.+?)`.*\|$", PAGE.read_text("utf-8"))
    if (words := shlex.split(line))[0] in ("docker", "pip", "pipx", "uvx")
}


def from_wheel(words: list[str]) -> list[str]:
    return [re.sub(r"^\.(\[\w+\])$", rf"rejoinder\1 @ {WHEEL}", word) for word in words]


def test_the_page_names_each_way():
    assert {*COMMANDS} == {"docker", "pip", "pipx", "uvx"}


@pytest.mark.parametrize("tool", ["pip", "pipx"])
def test_it_is_installed(tool, tmp_path):
    _, *words = from_wheel(COMMANDS[tool])
    if tool == "pip":
        subprocess.run([sys.base_prefix + "/bin/python3", "-m", "venv", tmp_path], check=True)
    places = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    installer = (tmp_path if tool == "pip" else Path(sys.prefix)) / "bin" / tool
    subprocess.run([installer, *words], env={**os.environ, **places}, check=True)
    subprocess.run([tmp_path / "bin/rejoinder", "similarity", "a", "a"], check=True)


def test_it_runs_without_being_installed(tmp_path, monkeypatch, serve):
    """It explores the made-up export, which is in the wheel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    program, *before, command = from_wheel(COMMANDS["uvx"])
    starter = tmp_path / "uvx"
    quoted = shlex.join([f"{sys.prefix}/bin/{program}", *before])
    starter.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    starter.chmod(0o755)
    address = serve("--no-browser", program=starter, command=command)
    corpus = httpx.get(f"{address}/corpus", trust_env=False).json()
    assert corpus["texts"] > 9_000
    assert (tmp_path / "made-up-slack-export.zip.explore").is_dir()
