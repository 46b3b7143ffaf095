"""Build time, opening, queries a second and memory of an index of texts, beside a NumPy scan.

    python benchmarks/index.py --pairs pairs/ --texts 1000000
    python benchmarks/index.py --pairs pairs/ --texts 200000 --model rejoinder-base --queries 1000

Texts and queries are different messages of the pairs. Queries are vectors, searched in batches and
alone. The scan is the product of all queries with all rows and `numpy.argpartition`. Prints one
JSON object.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder import Index, SentenceEncoder
from rejoinder.corpus.shards import open_pairs
from rejoinder.index.folder import TextIndex

BATCH = 256
"""Queries of the scan at a time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument("--model", default="rejoinder-small")
    parser.add_argument("--top-k", type=int, default=10)
    chosen = parser.parse_args()
    texts = list(islice(_messages(chosen.pairs), chosen.texts + chosen.queries))
    queries, texts = texts[: chosen.queries], texts[chosen.queries :]
    encoder = SentenceEncoder.load(chosen.model)
    rows = encoder.encode(queries)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        report: dict[str, Any] = {"texts": len(texts), "dim": encoder.dim, "queries": len(rows)}
        report["build_seconds"] = _seconds(lambda: Index.create(place, texts, chosen.model))
        report["megabytes"] = round(
            sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6, 1
        )
        report["open_seconds"] = statistics.median(
            _seconds(lambda: TextIndex(place)) for _ in range(5)
        )
        opened = TextIndex(place)
        report["batch_queries_per_second"] = _rate(len(rows), lambda: opened.search(rows, 10))
        alone = [_seconds(partial(opened.search, row[None], 10)) for row in rows[:50]]
        report["alone_ms"] = round(1_000 * statistics.median(alone), 2)
        corpus = np.array(opened._parts[0].segment.embeddings)
        report["scan_queries_per_second"] = _rate(
            len(rows), lambda: _scan(rows, corpus, chosen.top_k)
        )
    report["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(report, indent=1))


def _messages(folder: Path) -> Any:
    """Yields the different messages of the train split."""
    pairs, seen = open_pairs(folder), set[str]()
    for block in pairs.blocks("train"):
        for text in pairs.read(block, ["input"]).get_column("input"):
            if text not in seen:
                seen.add(text)
                yield text


def _scan(queries: np.ndarray, corpus: np.ndarray, top_k: int) -> None:
    for begin in range(0, len(queries), BATCH):
        scores = queries[begin : begin + BATCH] @ corpus.T
        np.argpartition(scores, -top_k, axis=1)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return round(time.perf_counter() - begun, 4)


def _rate(count: int, call: Callable[[], object]) -> int:
    call()
    return round(count / statistics.median(_seconds(call) for _ in range(3)))


if __name__ == "__main__":
    main()
