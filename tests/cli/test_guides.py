"""The commands of the guides run, on a small export."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["duplicates"])
def test_the_commands_of_a_guide_run(call, name, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "guides" / f"{name}.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    slack = runpy.run_path(str(ROOT / "examples" / "slack_export.py"))
    slack["write_export"](tmp_path / "slack-export.zip")
    [pairs] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "pairs.jsonl").write_text(pairs, "utf-8")
    commands = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).strip().split("\n")
    assert 0 < len(commands) <= 5
    for command in commands:
        status, out, err = call(*shlex.split(command, comments=True)[1:])
        assert (status, bool(out)) == (0, True), f"{command}: {err}"
