"""Recall, queries a second, memory and build time of an index of texts, and of a NumPy scan.

    python benchmarks/index.py --pairs pairs/ --texts 1000000
    python benchmarks/index.py --pairs pairs/ --texts 1000000 --model rejoinder-base --dim 256 \
        --copies 20 --dtype float16 --recall 0.9 --folder big/ --queries 512

Texts and queries are different messages and replies of the pairs, in random order; queries are
vectors, searched in batches of `--batch` and alone. With `--copies N` the index has N segments,
each of jittered copies of all embeddings cut to `--dim`: Gaussian noise of the length `--jitter` is
added, and the sum scaled to length 1. A text counts as found if its cosine reaches that of the
tenth text of an exact scan less 1e-5. The scan is the product of queries with rows and
`numpy.argpartition`. Building, searching and scanning run in separate processes, so that each
has its own peak of memory. Prints one JSON object.

`--folder` keeps everything and continues there. `--seconds` ends the work after the current
segment, so that a long build can run in pieces.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from rejoinder import Index, SentenceEncoder
from rejoinder.corpus.writer import open_pairs
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts

ALONE = 200
"""Queries that are searched one by one."""
SCAN_QUERIES, SCAN_ROWS = 256, 65_536
PART = 8_192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=4_096)
    parser.add_argument("--batch", type=int, default=1_024, help="Queries searched together.")
    parser.add_argument("--model", default="rejoinder-small")
    parser.add_argument("--dim", type=int, help="Cut embeddings to their first dimensions.")
    parser.add_argument("--copies", type=int, default=0, help="Segments of jittered copies.")
    parser.add_argument("--jitter", type=float, default=0.25)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--recall", type=float, default=0.98)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="Keep texts, embeddings and index here.")
    parser.add_argument("--seconds", type=float, default=1e9)
    chosen = parser.parse_args()
    if chosen.folder is not None:
        _run(chosen, chosen.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        _run(chosen, Path(folder))


def _run(chosen: argparse.Namespace, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "queries.npy").exists():
        _apart(_prepare, chosen, folder)
    built = folder / "built.json"
    if not built.exists() or chosen.copies:
        facts = _apart(_build, chosen, folder)
        built.write_text(json.dumps(facts))
        if facts["segments"] < chosen.copies:
            print(json.dumps(facts))
            return
    if not (folder / "scan.npy").exists():
        (folder / "scan.json").write_text(json.dumps(_apart(_scan, chosen, folder)))
    report = json.loads(built.read_text()) | _apart(_search, chosen, folder)
    report |= json.loads((folder / "scan.json").read_text())
    report["times_the_scan"] = round(
        report["queries_per_second"] / report["scan_queries_per_second"], 1
    )
    print(json.dumps(report, indent=1))


def _apart(call: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Calls a function in a separate process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(call, arguments)


def _prepare(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Writes texts, and the embeddings of texts and queries."""
    pairs, seen = open_pairs(chosen.pairs), dict[str, None]()
    for split in ("train", "dev", "test"):
        for frame in pairs.iter_frames(split, ["input", "response"]):
            for column in frame.columns:
                seen.update(dict.fromkeys(frame.get_column(column)))
    texts = list(seen)
    order = np.random.default_rng(0).permutation(len(texts))[: chosen.texts + chosen.queries]
    texts = [texts[number] for number in order.tolist()]
    rows = SentenceEncoder.load(chosen.model).encode(texts)
    if chosen.dim is not None:
        rows = _unit(rows[:, : chosen.dim])
    (folder / "texts.json").write_text(json.dumps(texts[chosen.queries :]))
    np.save(folder / "rows.npy", rows[chosen.queries :])
    np.save(folder / "queries.npy", rows[: chosen.queries])
    return {}


def _build(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    place = folder / "index"
    texts = json.loads((folder / "texts.json").read_text())
    begun = time.perf_counter()
    if chosen.copies:
        rows = np.load(folder / "rows.npy", mmap_mode="r")
        if not place.exists():
            model = IndexModel("none", "0" * 64, None, None)
            about = Manifest(model, rows.shape[1], recall=chosen.recall, dtype=chosen.dtype)
            create_index(place, about, [])
        index = TextIndex(place)
        while len(index) < chosen.copies * len(rows):
            copy = len(index) // len(rows)
            started = time.perf_counter()
            index.add_encoded(_copies(chosen, texts, rows, copy))
            with (folder / "seconds.txt").open("a") as times:
                times.write(f"{time.perf_counter() - started:.1f}\n")
            if time.perf_counter() - begun > chosen.seconds:
                break
    else:
        shutil.rmtree(place, ignore_errors=True)
        Index.create(place, texts, chosen.model, recall=chosen.recall, dtype=chosen.dtype)
        index = TextIndex(place)
        (folder / "seconds.txt").write_text(f"{time.perf_counter() - begun:.1f}\n")
    seconds = [float(line) for line in (folder / "seconds.txt").read_text().split()]
    probing = [to_builtins(entry.probing or {}) for entry in index.manifest.segments]
    return {
        "texts": len(index),
        "dim": index.manifest.dim,
        "dtype": index.manifest.dtype,
        "segments": len(probing),
        "probing": probing[0],
        "build_seconds": round(sum(seconds), 1),
        "build_peak_mb": _peak(),
        "disk_mb": _megabytes(place, "*"),
        "lists_mb": _megabytes(place, "lists.faiss"),
    }


def _copies(chosen: argparse.Namespace, texts: list[str], rows: np.ndarray, copy: int) -> Any:
    """Yields jittered copies of rows, with their texts."""
    generator = np.random.default_rng(copy + 1)
    for begin in range(0, len(rows), PART):
        part = np.asarray(rows[begin : begin + PART])
        noise = generator.standard_normal(part.shape, np.float32) / np.sqrt(part.shape[1])
        ids = [f"{copy}-{number}" for number in range(begin, begin + len(part))]
        yield EncodedTexts(ids, texts[begin : begin + PART], _unit(part + chosen.jitter * noise))


def _scan(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Writes the cosine of the last of the nearest texts for each query."""
    queries, index = np.load(folder / "queries.npy"), TextIndex(folder / "index")
    best = np.full((len(queries), chosen.top_k), -np.inf, np.float32)
    begun = time.perf_counter()
    for segment in index.segments:
        rows = segment.embeddings
        for begin in range(0, len(rows), SCAN_ROWS):
            block = np.asarray(rows[begin : begin + SCAN_ROWS], np.float32)
            for first in range(0, len(queries), SCAN_QUERIES):
                some = slice(first, first + SCAN_QUERIES)
                scores = queries[some] @ block.T
                places = np.argpartition(scores, -chosen.top_k, axis=1)[:, -chosen.top_k :]
                both = np.hstack([best[some], np.take_along_axis(scores, places, axis=1)])
                best[some] = np.partition(both, -chosen.top_k, axis=1)[:, -chosen.top_k :]
    seconds = time.perf_counter() - begun
    np.save(folder / "scan.npy", best.min(axis=1))
    return {"scan_queries_per_second": round(len(queries) / seconds, 1), "scan_peak_mb": _peak()}


def _search(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    queries, least = np.load(folder / "queries.npy"), np.load(folder / "scan.npy")
    place = folder / "index"
    first = _seconds(partial(TextIndex, place))
    opening = [_seconds(partial(TextIndex, place)) for _ in range(5)]
    index = TextIndex(place)
    before = _peak()
    first_query = _seconds(lambda: index.nearest(queries[:1], chosen.top_k))

    def all_hits() -> list[Any]:
        return [
            hits
            for begin in range(0, len(queries), chosen.batch)
            for hits in index.nearest(queries[begin : begin + chosen.batch], chosen.top_k)
        ]

    found = all_hits()
    scores = np.array([[hit.score for hit in hits] for hits in found])
    seconds = statistics.median(_seconds(all_hits) for _ in range(3))
    alone = [
        _seconds(partial(index.nearest, query[None], chosen.top_k)) for query in queries[:ALONE]
    ]
    return {
        "queries": len(queries),
        "recall": round(float((scores >= least[:, None] - 1e-5).mean()), 4),
        "queries_per_second": round(len(queries) / seconds),
        "alone_p50_ms": round(1_000 * statistics.median(alone), 2),
        "first_opening_ms": round(1_000 * first, 2),
        "opening_ms": round(1_000 * statistics.median(opening), 2),
        "first_query_ms": round(1_000 * first_query, 1),
        "before_search_mb": before,
        "search_peak_mb": _peak(),
    }


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _megabytes(place: Path, pattern: str) -> float:
    return round(sum(f.stat().st_size for f in place.rglob(pattern) if f.is_file()) / 1e6, 1)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _peak() -> int:
    """Returns the peak of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
