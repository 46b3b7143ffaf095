"""Compares libraries of approximate search: recall, queries a second, memory, build time.

    pip install usearch hnswlib faiss-cpu
    python benchmarks/index_libraries.py kept/ --rows 200000

`kept/` is the folder that `benchmarks/index.py --folder` left. Each library builds and searches in
a separate process. Candidates get true scores from the rows on disk, except with hnswlib, which
holds them itself. Prints one JSON object a line: a library, a setting of how much it searches.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.index import lists
from rejoinder.index.files import Probing, StoredRows
from rejoinder.inference.neighbours import nearest_rows
from rejoinder.io.files.hashed import file_facts

THREADS = 2
LINKS, WIDTH = 16, 128
"""Links per row of the graphs, and rows that building looks at."""
EFFORTS = (64, 128, 256, 512)
"""Rows that a search of a graph looks at."""
Find = Callable[[np.ndarray, int], np.ndarray]
"""Returns (Q, N) rows for queries and a number."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_024)
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=LIBRARIES)
    chosen = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        truth = pool.apply(_truth, (chosen,))
    for library in chosen.libraries:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            path = Path(folder) / lists.FILE
            with context.Pool(1) as pool:
                facts = pool.apply(_built, (library, path, chosen))
            with context.Pool(1) as pool:
                for line in pool.apply(_searched, (library, path, chosen, truth)):
                    print(json.dumps(facts | line), flush=True)


def _built(library: str, path: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    rows = np.array(np.load(chosen.folder / "rows.npy", mmap_mode="r")[: chosen.rows])
    seconds = _seconds(lambda: LIBRARIES[library][0](rows, path))
    return {
        "library": library,
        "rows": len(rows),
        "build_seconds": round(seconds, 1),
        "build_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "disk_mb": round(path.stat().st_size / 1e6, 1),
    }


def _searched(
    library: str, path: Path, chosen: argparse.Namespace, truth: np.ndarray
) -> list[dict[str, Any]]:
    rows = np.load(chosen.folder / "rows.npy", mmap_mode="r")[: chosen.rows]
    queries = np.load(chosen.folder / "queries.npy")[: chosen.queries]
    begun, before = time.perf_counter(), _resident()
    lines: list[dict[str, Any]] = []
    opening: dict[str, float] = {}
    for effort, find in LIBRARIES[library][1](path, rows.shape):
        if not opening:
            find(queries[:1], effort)
            opening = {"first_query_ms": round(1_000 * (time.perf_counter() - begun), 1)}
        lines.append(_rates(find, effort, queries, rows, truth))
    return [opening | line | {"resident_mb": _resident() - before} for line in lines]


def _rates(
    find: Find, effort: int, queries: np.ndarray, rows: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    def searched(some: np.ndarray) -> np.ndarray:
        found = find(some, effort)
        best = np.full((len(some), 10), -np.inf, np.float32)
        for number, query in enumerate(some):
            kept = found[number][found[number] >= 0]
            scores = -np.sort(-(rows[kept] @ query))[:10]
            best[number, : len(scores)] = scores
        return best

    best = searched(queries)
    seconds = statistics.median(_seconds(lambda: searched(queries)) for _ in range(3))
    alone = [_seconds(lambda query=query: searched(query[None])) for query in queries[:100]]  # type: ignore[misc]
    return {
        "effort": effort,
        "recall": round(float((best >= truth[:, None] - 1e-5).mean()), 4),
        "queries_per_second": round(len(queries) / seconds),
        "alone_p50_ms": round(1_000 * statistics.median(alone), 2),
    }


def _truth(chosen: argparse.Namespace) -> np.ndarray:
    queries = np.load(chosen.folder / "queries.npy")[: chosen.queries]
    rows = np.load(chosen.folder / "rows.npy", mmap_mode="r")[: chosen.rows]
    return np.asarray(nearest_rows(queries, rows, 10)[1][:, -1])


def _build_faiss(rows: np.ndarray, path: Path) -> None:
    stored = path.with_suffix(".rows")
    rows.tofile(stored)
    probing = lists.write_lists(path.parent, StoredRows(stored, rows.dtype, rows.shape), 0.98)
    path.with_suffix(".json").write_text(json.dumps([probing.probes, probing.candidates]))


def _search_faiss(path: Path, shape: tuple[int, ...]) -> Iterator[tuple[int, Find]]:
    probes, candidates = json.loads(path.with_suffix(".json").read_text())
    for share in (0.25, 0.5, 1, 1.5):
        effort = max(int(probes * share), 1)
        facts = file_facts(path.parent, [path.name])[path.name]
        opened = lists.Lists(path, facts, shape, Probing(effort, candidates, 0.0))
        yield effort, lambda some, _effort, opened=opened: opened.candidates(some, candidates)[0]  # type: ignore[misc]


def _build_usearch(rows: np.ndarray, path: Path, dtype: str = "i8") -> None:
    from usearch.index import Index

    graph = Index(
        ndim=rows.shape[1], metric="cos", dtype=dtype, connectivity=LINKS, expansion_add=WIDTH
    )
    graph.add(np.arange(len(rows)), rows, threads=THREADS)
    graph.save(path)


def _search_usearch(path: Path, _shape: tuple[int, ...]) -> Iterator[tuple[int, Find]]:
    from usearch.index import Index

    graph = Index.restore(path, view=True)

    def find(queries: np.ndarray, effort: int) -> np.ndarray:
        graph.expansion_search = effort
        keys = graph.search(queries, min(effort, 50), threads=THREADS).keys
        return np.asarray(keys, np.int64).reshape(len(queries), -1)

    for effort in EFFORTS:
        yield effort, find


def _build_hnswlib(rows: np.ndarray, path: Path) -> None:
    import hnswlib

    graph = hnswlib.Index("ip", rows.shape[1])
    graph.init_index(len(rows), ef_construction=WIDTH, M=LINKS)
    graph.set_num_threads(THREADS)
    graph.add_items(rows)
    graph.save_index(str(path))


def _search_hnswlib(path: Path, shape: tuple[int, ...]) -> Iterator[tuple[int, Find]]:
    import hnswlib

    graph = hnswlib.Index("ip", shape[1])
    graph.load_index(str(path))
    graph.set_num_threads(THREADS)

    def find(queries: np.ndarray, effort: int) -> np.ndarray:
        graph.set_ef(effort)
        return np.asarray(graph.knn_query(queries, 10)[0].astype(np.int64))

    for effort in EFFORTS:
        yield effort, find


LIBRARIES: dict[str, tuple[Callable[..., None], Callable[..., Iterator[tuple[int, Find]]]]] = {
    "faiss": (_build_faiss, _search_faiss),
    "usearch": (_build_usearch, _search_usearch),
    "hnswlib": (_build_hnswlib, _search_hnswlib),
}


def _resident() -> int:
    """Returns the memory of this process in MB, mapped files included."""
    status = Path("/proc/self/status").read_text("ascii").split()
    return int(status[status.index("VmRSS:") + 1]) // 1024


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
