"""Speed and memory of extraction, from compressed files to manifest.

    python benchmarks/extract.py ../shared/data/conversations/*.jsonl.zst

Every repetition is a process of its own, so that its peak memory is its own. Run it on an idle
machine: the figures are wall time.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rejoinder.corpus.extract import extract
from rejoinder.corpus.files import find_files
from rejoinder.formats.compression import decompressed


def once(dumps: list[str], **options: Any) -> dict[str, float]:
    """One extraction into a temporary folder: figures of this process."""
    stages: dict[str, float] = {}
    began = last = time.perf_counter()
    current = "start"

    def progress(stage: str, _done: int, _total: int | None) -> None:
        nonlocal current, last
        if stage != current:
            now = time.perf_counter()
            stages[current] = stages.get(current, 0.0) + now - last
            current, last = stage, now

    with tempfile.TemporaryDirectory() as folder:
        manifest = extract(dumps, Path(folder) / "pairs", progress=progress, **options)
    ended = time.perf_counter()
    stages[current] = ended - last
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return {
        "comments": manifest.counts.comments,
        "pairs": manifest.counts.pairs,
        "seconds": ended - began,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_rss_bytes": usage.ru_maxrss * unit,
        **{f"{stage}_seconds": seconds for stage, seconds in stages.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dumps", nargs="+", help="dumps in the Reddit schema")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rules", default="paper")
    parser.add_argument("--once", action="store_true", help="one repetition, as JSON")
    chosen = parser.parse_args()
    if chosen.once:
        options = {name: getattr(chosen, name) for name in ("rules", "memory", "threads")}
        print(json.dumps(once(chosen.dumps, **options)))
        return
    size = sum(len(piece) for path in find_files(chosen.dumps) for piece in decompressed(path))
    command = [sys.executable, __file__, *sys.argv[1:], "--once"]
    print(f"{size / 1e6:,.0f} MB decompressed, {os.cpu_count()} cores, --memory {chosen.memory}")
    rates = []
    for _ in range(chosen.repeat):
        figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        seconds = figures.pop("seconds")
        rates.append(figures["comments"] / seconds)
        stages = ", ".join(
            f"{name.removesuffix('_seconds')} {value:.1f} s"
            for name, value in figures.items()
            if name.endswith("_seconds")
        )
        print(
            f"{figures['comments']:,} comments, {figures['pairs']:,} pairs in {seconds:.1f} s: "
            f"{rates[-1]:,.0f} comments/s, {size / 1e6 / seconds:,.0f} MB/s, "
            f"peak {figures['peak_rss_bytes'] / 1e9:.2f} GB ({stages})"
        )
    print(f"median {statistics.median(rates):,.0f} comments/s")


if __name__ == "__main__":
    main()
