"""The commands of the guides run, on a small export."""

import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from export_samples import mbox
from rejoinder.conversations.explore import MADE_UP

PROGRAMS = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["duplicates"])
def test_the_commands_of_a_guide_run(call, name, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "guides" / f"{name}.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    slack = runpy.run_path(str(ROOT / "examples" / "slack_export.py"))
    slack["write_export"](tmp_path / "slack-export.zip")
    [pairs] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "pairs.jsonl").write_text(pairs, "utf-8")
    commands = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).strip().split("\n")
    assert 0 < len(commands) <= 5
    for command in commands:
        status, out, err = call(*shlex.split(command, comments=True)[1:])
        assert (status, bool(out)) == (0, True), f"{command}: {err}"


def explore(words):
    """Opens the page, and ends it."""
    command = [PROGRAMS / "rejoinder", *words, "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if address := re.search(r"http://\S+", line):
                assert httpx.get(address[0], trust_env=False).status_code == 200
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.slow
def test_the_commands_on_private_messages_run(call, tmp_path, monkeypatch):
    page = (ROOT / "docs/exports.md").read_text("utf-8")
    [commands] = re.findall(r"```sh\n(rejoinder find-personal.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "examples/slack_export.py"], check=True)
    assert call("extract", "slack-export.zip", "--out", "pairs")[0] == 0
    index = ("index", "slack-export.zip", "--out", "slack-export.zip.explore")
    assert call(*index, "-m", "rejoinder-small")[0] == 0
    for line in commands.strip().split("\n"):
        status, out, err = call(*shlex.split(line, comments=True)[1:])
        assert (status, bool(out)) == (0, True), err


@pytest.mark.slow
def test_the_guide_to_a_chat_runs(call, tmp_path, monkeypatch):
    page = (ROOT / "docs/explore.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    first, more, _ = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    _, *opened = (shlex.split(line, comments=True) for line in first.strip().split("\n"))
    for name in ("slack-export.zip", "slack.zip"):
        shutil.copy(MADE_UP, name)
    Path("mails.mbox").write_text(mbox.FILES["dev/2006-May.txt"], "utf-8")
    for words in opened:
        explore(words[1:])
    for line in more.strip().split("\n"):
        status, out, err = call(*shlex.split(line)[1:])
        assert (status, bool(out)) == (0, True), err
