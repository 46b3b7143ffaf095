"""Speed and memory of extraction, from compressed files to manifest.

    python benchmarks/extract.py ../shared/data/conversations/*.jsonl.zst

Each repetition extracts once and then computes the same pairs by one plain DuckDB query over the
same files, for the ratio. Every extraction is a separate process, so that its peak memory can be
measured. Run it on an idle machine: the figures are wall time.
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self

import duckdb

from rejoinder.corpus.extract import extract
from rejoinder.corpus.reading.files import find_files
from rejoinder.io.formats.compression import decompressed


class _Disk:
    """Watches the bytes of the files in a folder, twice a second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.peak = folder, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            with contextlib.suppress(FileNotFoundError):
                sizes = (path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
                self.peak = max(self.peak, sum(sizes))


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

    with tempfile.TemporaryDirectory() as folder, _Disk(Path(folder)) as disk:
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
        "peak_disk_bytes": disk.peak,
        **{f"{stage}_seconds": seconds for stage, seconds in stages.items()},
    }


QUERY = """
COPY (
    WITH comments AS (
        SELECT id, parent_id, link_id, subreddit, body, md5(link_id)[1:8] AS hash
        FROM read_json($files, format = 'newline_delimited', columns = {
            id: 'VARCHAR', parent_id: 'VARCHAR', link_id: 'VARCHAR', author: 'VARCHAR',
            subreddit: 'VARCHAR', body: 'VARCHAR'})
        WHERE body NOT IN ('', '[deleted]', '[removed]') AND length(body) < 350
            AND length(regexp_replace(body, '[^\\p{L}]', '', 'g')) * 10 > length(body) * 7
            AND NOT starts_with(body, 'https') AND NOT starts_with(body, '/r/')
            AND NOT starts_with(body, '@') AND NOT contains(lower(author), 'bot'))
    SELECT reply.link_id AS thread_id, message.id AS input_id, reply.id AS response_id,
        message.body AS input, reply.body AS response, reply.subreddit AS source,
        CASE WHEN reply.hash < 'f3333333' THEN 0 WHEN reply.hash < 'f9999999' THEN 1 ELSE 2 END
            AS split
    FROM comments AS reply JOIN comments AS message ON reply.parent_id = 't1_' || message.id
    ORDER BY split, thread_id, response_id
) TO '{out}' (FORMAT parquet, COMPRESSION zstd)"""
"""The rules of the paper, the join and the order of the output. It decompresses gzip and zstd, but
cleans no text, and counts nothing."""


def plain_query(dumps: list[str], memory: str, threads: int | None) -> float:
    """Computes the query; returns its seconds. The pairs are only written, to a temporary file."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute(f"SET temp_directory = '{folder}'")
        connection.execute(f"SET threads = {threads or os.cpu_count()}")
        connection.execute("SET enable_progress_bar = false")
        began = time.perf_counter()
        files = [str(path) for path in find_files(dumps)]
        query = QUERY.replace("{out}", f"{folder}/pairs.parquet")
        connection.execute(query, {"files": files})
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dumps", nargs="+", help="dumps in the Reddit schema")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rules", default="paper")
    parser.add_argument("--engine", default="local", help="engine of the extraction")
    parser.add_argument("--without-query", action="store_true", help="leave out the plain query")
    parser.add_argument("--once", action="store_true", help="one repetition, as JSON")
    chosen = parser.parse_args()
    if chosen.once:
        options = {name: getattr(chosen, name) for name in ("rules", "memory", "threads", "engine")}
        print(json.dumps(once(chosen.dumps, **options)))
        return
    size = sum(len(piece) for path in find_files(chosen.dumps) for piece in decompressed(path))
    command = [sys.executable, __file__, *sys.argv[1:], "--once"]
    print(f"{size / 1e6:,.0f} MB decompressed, {os.cpu_count()} cores, --memory {chosen.memory}")
    rates, ratios = [], []
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
            f"peak {figures['peak_rss_bytes'] / 1e9:.2f} GB, disk "
            f"{figures['peak_disk_bytes'] / 1e9:.2f} GB ({stages})"
        )
        if not chosen.without_query:
            taken = plain_query(chosen.dumps, chosen.memory, chosen.threads)
            ratios.append(taken / seconds)
            rate = figures["comments"] / taken
            print(f"  plain query {taken:.1f} s: {rate:,.0f} comments/s; ratio {ratios[-1]:.2f}")
    print(f"median {statistics.median(rates):,.0f} comments/s")
    if ratios:
        print(f"median {statistics.median(ratios):.2f} times the plain query")


if __name__ == "__main__":
    main()
