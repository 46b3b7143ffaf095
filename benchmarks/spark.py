"""Compares Spark and Ray on this machine with the single-machine path.

    python benchmarks/spark.py extract ../shared/data/conversations/reddit_*.jsonl.zst
    python benchmarks/spark.py encode sentences.txt --model rejoinder-base

One session serves all repetitions, so that the starts of Java and of Ray are measured separately.
Run it on an idle machine: the figures are wall time. The sides take turns.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ray

from rejoinder.corpus.extract import extract
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import encode_file
from rejoinder.inference.part_encoding import encode_files
from rejoinder.io.spark_session import open_session
from rejoinder.models.find import shipped_model

Side = Callable[[Path], int]
"""Works into a new folder or file, and returns the number of comments or sentences."""


def extractions(dumps: list[str], threads: int) -> dict[str, Side]:
    def run(engine: str, out: Path) -> int:
        threads_of = threads if engine == "duckdb" else None
        return extract(dumps, out / "pairs", engine=engine, threads=threads_of).counts.comments

    return {name: lambda out, name=name: run(name, out) for name in ("duckdb", "spark")}  # type: ignore[misc]


def encodings(texts: str, model: str | None, threads: int) -> dict[str, Side]:
    folder = shipped_model() if model is None else Path(model)
    encoders = {count: SentenceEncoder.load(folder, threads=count) for count in {1, threads}}
    size = max(Path(texts).stat().st_size // (4 * threads), 1)

    def alone(count: int) -> Side:
        return lambda out: encode_file(encoders[count], texts, out / "e.npy").n

    def on(engine: str) -> Side:
        return lambda out: (
            encode_files(folder, texts, out / "e.npy", engine=engine, part_bytes=size).n
        )

    return {
        "one process, one thread": alone(1),
        f"one process, {threads} threads": alone(threads),
        "spark": on("spark"),
        "ray": on("ray"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["extract", "encode"])
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    began = time.perf_counter()
    session = open_session(f"local[{arguments.threads}]", "2GB")
    session.expect(0)
    started = {"spark": round(time.perf_counter() - began, 1)}
    if arguments.what == "extract":
        sides = extractions(arguments.inputs, arguments.threads)
    else:
        began = time.perf_counter()
        ray.init("local", num_cpus=arguments.threads, include_dashboard=False, log_to_driver=False)
        started["ray"] = round(time.perf_counter() - began, 1)
        sides = encodings(arguments.inputs[0], arguments.model, arguments.threads)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    count = 0
    for repetition in range(arguments.repeat + 1):
        for name, side in sides.items():
            with tempfile.TemporaryDirectory() as out:
                began = time.perf_counter()
                count = side(Path(out))
                seconds = time.perf_counter() - began
            if repetition:  # the first one warms Java and the workers up
                rates[name].append(count / seconds)
    session.close()
    print(json.dumps({
        "n": count,
        "session_seconds": started,
        "per_second": {
            name: {"median": round(statistics.median(r)), "all": [round(x) for x in r]}
            for name, r in rates.items()
        },
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
