"""The page of one file (`rejoinder explore --to`) without a browser: its scripts, run by Node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


def answers(file, *calls):
    """What the page answers to calls, each a path and a body."""
    command = ["node", Path(__file__).with_suffix(".mjs"), file]
    run = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
