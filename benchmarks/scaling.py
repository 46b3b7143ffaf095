"""Compares the speed of several workers with that of one, and counts the bytes between them.

    python benchmarks/scaling.py --pairs pairs/                       # 1 and 2 workers of a thread
    python benchmarks/scaling.py --pairs pairs/ --workers 1,2,4 --batch 4096

Every worker is a process of `--threads` threads, started by torchrun and running `rejoinder train`.
Batches are of the same size for all numbers of workers, which take turns. Speeds are medians of the
stretches that `metrics.jsonl` has, the first ones left out; bytes are those that the loopback
device of Linux counted.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import tomli_w

from rejoinder.training.workers import describe_machine
from train import PAPER, WORDS

SIZES = {"paper": PAPER, "words": WORDS}
EVERY = 5
"""Steps of a stretch."""


def config_of(chosen: argparse.Namespace, batch: int) -> dict[str, object]:
    """The config of the runs."""
    tree = SIZES[chosen.model]
    phase = {"steps": chosen.steps, "batch_size": batch, "learning_rate": 0.001}
    return {
        **tree,
        "training": {
            "precision": chosen.precision,
            "log_every": EVERY,
            "mini_batch_size": chosen.mini_batch_size,
        },
        "phases": [{**phase, "table_learning_rate": 0.1}],
    }


def begun(chosen: argparse.Namespace, folder: Path) -> Path:
    """A run of which no step is taken, so that the vocabulary is learned once."""
    config = folder / "config.toml"
    config.write_text(tomli_w.dumps(config_of(chosen, chosen.batch)))
    run = folder / "begun"
    command = [sys.executable, "-m", "rejoinder", "train", "--config", str(config), "--quiet"]
    data = ["--pairs", str(chosen.pairs), "--out", str(run), "--stop-at", "1"]
    subprocess.run([*command, *data], check=True)
    shutil.rmtree(run / "checkpoints")
    return run


def measured(chosen: argparse.Namespace, start: Path, workers: int) -> dict[str, float]:
    """Speed and traffic of a run by so many workers."""
    run = start.with_name("run")
    shutil.copytree(start, run)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(workers), "--standalone"]
    command = ["-m", "rejoinder", "train", "--pairs", str(chosen.pairs), "--out", str(run)]
    limits = ["--resume", "--stop-at", str(chosen.steps - 1), "--quiet"]
    threads = ["--threads", str(chosen.threads)]
    before = loopback()
    subprocess.run(
        [sys.executable, *torchrun, *command, *limits, *threads],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": str(chosen.threads)},
    )
    counted = (loopback() - before) / chosen.steps / 1e6
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    stretches = [line for line in lines if line["group"] == "train"][chosen.skip :]
    shutil.rmtree(run)
    speed = statistics.median(line["pairs_per_second"] for line in stretches)
    return {"pairs_per_second": speed, "mb_loopback": counted if workers > 1 else 0.0}


def loopback() -> float:
    """Bytes that went over the loopback device so far, those of other processes included."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[9]) for line in lines if line.split()[0] == "lo:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--workers", default="1,2", help="numbers of workers; the first is 1.0 x")
    parser.add_argument("--threads", type=int, default=1, help="threads of a worker")
    parser.add_argument("--model", choices=list(SIZES), default="paper")
    parser.add_argument("--precision", choices=["fp32", "bf16", "auto"], default="fp32")
    parser.add_argument("--batch", type=int, default=2048, help="pairs, of all workers together")
    parser.add_argument("--steps", type=int, default=41)
    parser.add_argument("--skip", type=int, default=2, help=f"stretches of {EVERY} steps left out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mini-batch-size", type=int, default=0)
    chosen = parser.parse_args()
    counts = [int(count) for count in chosen.workers.split(",")]
    rounds: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as folder:
        start = begun(chosen, Path(folder))
        for _ in range(chosen.rounds):
            for count in counts:
                rounds[count].append(measured(chosen, start, count))
    machine = describe_machine()
    print(
        f"{chosen.model}, {chosen.precision}, {chosen.batch} pairs a step, threads a worker: "
        f"{chosen.threads}, median of {chosen.rounds} rounds; {machine['processor']}, "
        f"{machine['cores']} cores, torch {machine['torch']}"
    )
    # a machine that slows down slows down a round
    for count in counts:
        speed = statistics.median(each["pairs_per_second"] for each in rounds[count])
        ratios = [
            each["pairs_per_second"] / first["pairs_per_second"]
            for each, first in zip(rounds[count], rounds[counts[0]], strict=True)
        ]
        said = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print(
            f"{count} workers  {speed:8,.0f} pairs/s  {statistics.median(ratios):.2f} x the first "
            f"(rounds: {said})"
        )
        if count > 1:
            print(f"  MB over loopback per step: {rounds[count][-1]['mb_loopback']:.1f}")


if __name__ == "__main__":
    main()
