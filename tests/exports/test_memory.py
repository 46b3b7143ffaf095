"""Large exports are read in bounded memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
READ = """
import re, sys
from pathlib import Path
from rejoinder.exports import FORMATS
from rejoinder.corpus.convert import convert
from rejoinder.corpus.export_options import ExportOptions, Texts

sys.path.insert(0, sys.argv[1])
import large_exports

name, comments, folder = sys.argv[2], *map(Path, sys.argv[3:])
options = ExportOptions()
for size in (10_000_000, 110_000_000):
    export = folder / f"{size}{large_exports.ENDINGS.get(name, '')}"
    large_exports.FORMATS[name](large_exports.messages(comments), size, export)
    file = folder / f"{size}.jsonl"
    made = convert(export, FORMATS[name], options, Texts(options), file, lambda _: None)
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(made.counts.messages, int(peak[1]) / 1000)
"""
"""Prints the messages of a small and of a large export, and after each the peak of memory in MB."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["telegram", "slack", "whatsapp", "mbox"])
def test_memory_hardly_grows_with_an_export(name, tmp_path):
    """An export of 100 MB more: two thirds of that are allowed, and chance takes up to 40."""
    text = "What does it say there, and why? " * 30
    rows = [
        {"id": f"{thread}-{row}", "parent_id": f"t1_{thread}-{row - 1}", "link_id": f"t3_{thread}"}
        for thread in range(40)
        for row in range(5)
    ]
    comments = tmp_path / "comments.jsonl"
    comments.write_text("".join(json.dumps({**row, "body": text}) + "\n" for row in rows))
    given = [str(BENCHMARKS), name, str(comments), str(tmp_path)]
    # how many pools threads take is chance: with several, one in ten runs of mbox grew by 20 MB
    command = [sys.executable, "-c", READ, *given]
    one_pool = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    run = subprocess.run(command, env=one_pool, capture_output=True, text=True, check=True)
    (few, before), (many, after) = (map(float, line.split()) for line in run.stdout.splitlines())
    assert many > 5 * few
    assert after - before < 66
