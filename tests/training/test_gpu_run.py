"""The script for a lent GPU, in small on a CPU: prepared, taken away, and gone on with."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rejoinder.inference.encoder import SentenceEncoder

SCRIPT = Path(__file__).resolve().parents[2] / "tools/gpu_run.sh"
SMALL = [
    *("encoder.layers=1", "encoder.heads=2", "encoder.hidden=16", "encoder.filter=16"),
    *("encoder.dim=16", "head.layers=[16,16]", "text.max_words=300", "phases.0.steps=100000"),
    *("phases.0.batch_size=16", "training.checkpoint_every=20", "training.evaluate_every=100000"),
]


@pytest.mark.slow
def test_a_run_goes_on_where_a_machine_was_taken_away(small_pairs, labelled, tmp_path):
    run = tmp_path / "run"
    words = {"CONFIG": "transformer-modern", "MINUTES": "0.15"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **words, "PATH": path}

    def command(step, *more):
        return [SCRIPT, step, run, small_pairs, labelled, *more]

    def steps():
        return {int(path.name.removeprefix("step-")) for path in run.glob("checkpoints/step-*")}

    subprocess.run(command("prepare", *SMALL), env=environment, check=True)
    assert steps() == {1}
    with subprocess.Popen(command("train"), env=environment, start_new_session=True) as lent:
        deadline = time.monotonic() + 60
        while max(steps()) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(lent.pid, 9)
    kept = max(steps())
    assert kept >= 20
    done = subprocess.run(command("train"), env=environment, check=True, capture_output=True)
    assert b"P@1" in done.stdout + done.stderr
    assert max(steps()) > kept
    assert SentenceEncoder.load(run / "model").encode(["How are you?"]).shape == (1, 16)


def test_another_word_is_refused(tmp_path):
    done = subprocess.run([SCRIPT, "fly", "a", "b", "c"], capture_output=True)
    assert done.returncode == 2
    assert b"prepare|train" in done.stderr
