"""Workers that torchrun starts: the command of the README for several hosts, and its faults."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ports import free_port
from rejoinder.training.loop import checkpoint

pytestmark = pytest.mark.slow  # each process of torchrun imports torch

README = Path(__file__).resolve().parents[3] / "README.md"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SMALL = ["encoder.width=8", "encoder.layers=[8,8]", "head.layers=[8,8]"]


def test_the_command_of_the_readme_trains_on_two_hosts(small_pairs, tmp_path):
    (line,) = [
        line for line in README.read_text("utf-8").split("\n") if "torchrun --nnodes" in line
    ]
    _, *given = shlex.split(line)
    for name, value in {
        "--nnodes": "2",
        "--nproc-per-node": "1",
        "--rdzv-endpoint": f"127.0.0.1:{free_port()}",
        "--config": "dan-paper",
        "--pairs": str(small_pairs),
        "--out": str(tmp_path / "run"),
    }.items():
        given[given.index(name) + 1] = value
    command = [*TORCHRUN, *given, "text.min_count=2"]
    short = ["--stop-at", "4", "phases.0.batch_size=64", "training.log_every=2"]
    hosts = [subprocess.Popen([*command, *SMALL, *short]) for _ in range(2)]
    try:
        assert [host.wait(180) for host in hosts] == [0, 0]
    finally:
        for host in hosts:
            host.terminate()  # its workers, too
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    steps = [line for line in lines if line["group"] == "train"]
    assert [line["step"] for line in steps] == [2, 4]
    assert checkpoint.latest(tmp_path / "run").name == "step-4"


def test_a_faulty_config_is_told_once(small_pairs, tmp_path):
    given = ["--standalone", "--nproc-per-node", "2", "-m", "rejoinder", "train"]
    asked = ["--config", "dan-paper", "--pairs", str(small_pairs), "--out", str(tmp_path / "run")]
    told = subprocess.run(
        [*TORCHRUN, *given, *asked, "nonsense=4"], capture_output=True, text=True, timeout=180
    )
    assert told.returncode
    assert told.stderr.count("unknown key 'nonsense'") == 1
    assert not (tmp_path / "run").exists()
