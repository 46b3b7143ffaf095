"""Ten of the kills of `benchmarks/faults.py`: the same command ends with the same bytes."""

import random
import signal

import pytest

pytestmark = pytest.mark.slow

COMMANDS = (
    "extract", "extract carry", "train", "train over", "encode", "adapt", "evaluate", "index",
    "index add link", "index update", "index compact", "index over", "export", "data add",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_ends_with_the_same_bytes_when_it_runs_again(name, prepared, tmp_path):
    faults, command = prepared.faults, prepared.faults.commands(prepared.base)[name]
    reference = faults.baseline(command, prepared.base, tmp_path / "whole")
    draw = random.Random(name)
    operations = sorted(draw.sample(range(1, reference.ended.operations + 1), 2), reverse=True)
    kills = [faults.Kill(signal.SIGKILL, operation=number) for number in operations]
    faults.lay_out(command, prepared.base, tmp_path / "trial")
    done = faults.trial(command, reference, tmp_path / "trial", kills)
    assert done.kills, "it was not killed"
    assert not done.wrong
