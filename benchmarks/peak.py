"""Peak memory of commands, each in a separate process.

    python benchmarks/peak.py evaluate run/model --pairs pairs/ --data ../shared/data
    python benchmarks/peak.py exports ../shared/data/conversations/reddit_2015.jsonl.zst

`evaluate` has a process for each task. `exports` makes an export of each format that
`large_exports.py` knows, extracts its pairs and indexes its messages with the default options, and
removes it all before the next one. 2 GB of mail need 20 GB of disk for a while.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from large_exports import ENDINGS, FORMATS, messages
from rejoinder.io.formats.shown import parse_bytes

TASKS = "response stsb sts12 sts15 sts17 mr cr subj sst2 trec mrpc stsb/senteval-regression cqa"
RUN = [sys.executable, "-m", "rejoinder"]


def peak(command: list[str]) -> tuple[int, float, float]:
    """Exit status and MB of resident memory at most, with and without pages of files.

    The second is looked at every 0.25 s, on Linux alone.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own, ended = 0, 0
    while not ended:
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            own = max(own, next(int(line.split()[1]) for line in lines if "RssAnon" in line))
        time.sleep(0.25)
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1.024e-3, own * 1.024e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    evaluate = commands.add_parser("evaluate")
    evaluate.add_argument("encoders", nargs="+")
    evaluate.add_argument("--pairs", type=Path, required=True)
    evaluate.add_argument("--data", type=Path, required=True)
    evaluate.add_argument("--tasks", nargs="+", default=TASKS.split())
    exports = commands.add_parser("exports")
    exports.add_argument("comments", type=Path)
    exports.add_argument("--size", default="2GB")
    exports.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    exports.add_argument("--folder", type=Path, help="on a disk with room")
    exports.add_argument("--options", nargs="*", default=[], help="more for extract")
    chosen = parser.parse_args()
    {"evaluate": _evaluate, "exports": _exports}[chosen.command](chosen)


def _evaluate(chosen: Any) -> None:
    data = ["--pairs", str(chosen.pairs), "--data", str(chosen.data), "--skip-missing"]
    print("MB", *chosen.encoders, sep="\t")
    with tempfile.TemporaryDirectory() as folder:
        for task in chosen.tasks:
            row = []
            for encoder in chosen.encoders:
                out = Path(folder) / f"{len(list(Path(folder).iterdir()))}.json"
                command = [*RUN, "evaluate", encoder, "--tasks", task, "--out", str(out), *data]
                row.append(_shown(*peak(command)[:2]))
            print(task, *row, sep="\t", flush=True)


def _exports(chosen: Any) -> None:
    size = int(parse_bytes(chosen.size, "--size"))
    print("", "command", "MB", "MB without files", "seconds", "messages", sep="\t")
    for name in chosen.formats:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            export = Path(folder) / f"export{ENDINGS.get(name, '')}"
            FORMATS[name](messages(chosen.comments), size, export)
            for command, options in (("extract", chosen.options), ("index", [])):
                out, begin = Path(folder) / command, time.perf_counter()
                run = [*RUN, command, str(export), "--out", str(out), *options]
                status, most, own = peak(run)
                seconds = round(time.perf_counter() - begin)
                row = (_shown(status, most), f"{own:.0f}", seconds, _messages(out))
                print(name, command, *row, sep="\t", flush=True)
                shutil.rmtree(out, ignore_errors=True)


def _messages(pairs: Path) -> int | str:
    """Returns the number of messages that an extraction read; nothing for an index."""
    manifest = pairs / "manifest.json"
    exports = json.loads(manifest.read_bytes()).get("exports") if manifest.exists() else None
    return exports[0]["messages"] if exports else ""


def _shown(status: int, most: float) -> str:
    return f"{most:.0f}" if status == 0 else f"exit status {status}"


if __name__ == "__main__":
    main()
