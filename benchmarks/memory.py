"""Peak memory of `rejoinder evaluate`, one process a task.

python benchmarks/memory.py run/model --pairs pairs/ --data ../shared/data
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TASKS = "response stsb sts12 sts15 sts17 mr cr subj sst2 trec mrpc stsb/senteval-regression cqa"


def peak(command: list[str]) -> tuple[int, float]:
    """Exit status and MB of resident memory at most."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("encoders", nargs="+")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=TASKS.split())
    args = parser.parse_args()
    run = [sys.executable, "-m", "rejoinder", "evaluate"]
    data = ["--pairs", str(args.pairs), "--data", str(args.data), "--skip-missing"]
    print("MB", *args.encoders, sep="\t")
    with tempfile.TemporaryDirectory() as folder:
        for task in args.tasks:
            row = []
            for encoder in args.encoders:
                out = Path(folder) / f"{len(list(Path(folder).iterdir()))}.json"
                status, most = peak([*run, encoder, "--tasks", task, "--out", str(out), *data])
                row.append(f"{most:.0f}" if status == 0 else f"exit status {status}")
            print(task, *row, sep="\t", flush=True)


if __name__ == "__main__":
    main()
