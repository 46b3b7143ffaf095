"""Inverted lists of a segment's rows (FAISS), which give the candidates of approximate search.

The list of a centroid holds its nearest rows, as 4-bit codes of the difference, one per two
dimensions (Jégou et al. 2011, §4; André et al. 2015 for scanning 4-bit codes). A query is compared
with the codes in its nearest lists. The best rows then get exact scores, so the codes decide which
rows are compared, not their order.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, require
from rejoinder.index.files import REMEDY, Probing, StoredRows
from rejoinder.inference.neighbours import dots, nearest_rows
from rejoinder.io.files.hashed import check_file
from rejoinder.protocols import Embeddings

FILE = "lists.faiss"
LEAST_ROWS = 200_000
"""Fewest rows of a segment with lists. Scanning fewer rows takes milliseconds."""
EXTRA, PACKAGE = "index", "faiss"
_LISTS_PER_CANDIDATE = 0.2
"""Time of an exact score relative to a list: 0.4 and 2 microseconds at a million rows."""
_CANDIDATES = (100, 200, 400, 800)
"""Numbers of candidates per query to try."""

_SAMPLE_PER_LIST, _LEAST_SAMPLE = 40, 65_536
_STRETCH = 256
"""Rows per stretch of the sample: sampling single rows would read all pages."""
_BLOCK = 65_536
_MOST_CODES = 256
"""Most codes per row. More take longer and find hardly more."""
_JUDGED, _JUDGED_HITS = 512, 10
"""Sampled rows for choosing the number of probes, and neighbours per row."""
_MARGIN = 0.004
"""The measured recall must exceed the wanted recall by twice its standard error."""


def write_lists(folder: Path, stored: StoredRows, recall: float) -> Probing:
    """Writes `lists.faiss` for rows, and chooses how much of it a query reads.

    A query reads just enough to find a share `recall` of its ten nearest neighbours. With one
    thread, the same rows give the same file. With more threads FAISS sums in another order, which
    may change the last digits of a centroid.

    Args:
        folder: Where to write it.
        stored: (N, D) float32 or float16, N at least 2. Memory holds a sample and the lists.
        recall: From 0 to 1.

    Raises:
        MissingExtraError: FAISS is not installed.
    """
    require(EXTRA, PACKAGE)
    import faiss

    rows, dim = stored.mapped.shape
    count = _list_count(rows)
    sample = _sample(stored, max(_LEAST_SAMPLE, _SAMPLE_PER_LIST * count))
    centroids = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFPQFastScan(
        centroids, dim, count, _code_count(dim), 4, faiss.METRIC_INNER_PRODUCT
    )
    index.by_residual = True
    index.cp.niter, index.cp.seed, index.cp.spherical = 6, 1, True
    index.cp.max_points_per_centroid = 10**6
    index.pq.cp.niter = 8  # 25, the default, find no more neighbours
    index.train(sample)
    del sample
    for _, block in stored.blocks(_BLOCK):
        index.add(np.ascontiguousarray(block, np.float32))
    faiss.write_index(index, str(folder / FILE))
    return _chosen(index, stored, recall)


class Lists:
    """The lists of a segment, loaded by the first search."""

    def __init__(self, path: Path, facts: object, shape: tuple[int, ...], probing: Probing) -> None:
        """Prepares to read the lists of `shape` rows from a file with `facts` (`check_file`)."""
        self._path, self._facts, self._shape, self.probing = path, facts, shape, probing

    def candidates(
        self, queries: Embeddings, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns for each query `count` rows that may be the nearest, and rough scores.

        Returns:
            (Q, `count`) int64 rows, -1 where the probed lists hold fewer, and float32 scores.

        Raises:
            MissingExtraError: FAISS is not installed.
            InputError: the file is damaged.
        """
        scores, rows = self._index.search(np.ascontiguousarray(queries, np.float32), count)
        return rows, scores

    @cached_property
    def _index(self) -> Any:
        require(EXTRA, PACKAGE)
        import faiss

        # FAISS checks nothing: a changed byte gave wrong results or crashed the process
        check_file(self._path, self._facts, InputError, REMEDY)
        damaged = InputError(f"{self._path} does not hold the lists of this segment. {REMEDY}")
        try:
            index = faiss.read_index(str(self._path))
        except RuntimeError:
            raise damaged from None
        if (index.ntotal, index.d) != self._shape or not hasattr(index, "nprobe"):
            raise damaged
        index.nprobe = self.probing.probes
        return index


def _list_count(rows: int) -> int:
    """Returns the power of two that is nearest to the square root of `rows`."""
    return int(2 ** round(np.log2(rows) / 2))


def _code_count(dim: int) -> int:
    """Returns the largest divisor of `dim` up to `dim` / 2 and `_MOST_CODES`."""
    most = min(max(dim // 2, 1), _MOST_CODES)
    return next(number for number in range(most, 0, -1) if dim % number == 0)


def _sample(stored: StoredRows, size: int) -> NDArray[np.float32]:
    """Returns about `size` rows as float32, in evenly spread stretches."""
    rows, dim = stored.mapped.shape
    if rows <= size:
        return np.array(stored.mapped, np.float32)
    begins = np.linspace(0, rows - _STRETCH, size // _STRETCH).astype(np.int64)
    sample = np.empty((len(begins), _STRETCH, dim), np.float32)
    for stretch, begin in zip(sample, begins.tolist(), strict=True):
        stretch[:] = stored.read(np.arange(begin, begin + _STRETCH))
    return sample.reshape(-1, dim)


def _chosen(index: Any, stored: StoredRows, recall: float) -> Probing:
    """Returns the fastest numbers of probes and candidates that reach a recall."""
    count = len(stored.mapped)
    places = np.linspace(0, count - 1, min(_JUDGED, count)).astype(np.int64)
    queries = np.array(stored.read(places), np.float32)
    hits = _JUDGED_HITS + 1  # a row's nearest neighbour is itself
    nearest, exact = _nearest(queries, stored, hits)

    def found(probes: int, candidates: int) -> float:
        index.nprobe = probes
        _, rows = index.search(queries, candidates)
        best = np.full((len(queries), hits), -np.inf, np.float32)
        for number, query in enumerate(queries):
            kept = rows[number][rows[number] >= 0]
            scores = -np.sort(-dots(np.asarray(stored.read(kept), np.float32), query))[:hits]
            best[number, : len(scores)] = scores
        return float((best[:, 1:] >= exact[:, -1:] - 1e-6).mean())

    wanted = min(recall + _MARGIN, 1.0)
    needed = _needed_probes(index, queries, stored, nearest[:, 1:])
    tried: list[tuple[int, int]] = []
    for count in _CANDIDATES:
        probes = _least_probes(needed, wanted, partial(found, candidates=count))
        if probes is not None:
            tried.append((probes, count))
        # with the fewest candidates, a query may need most lists; with more, far fewer lists
        if len(tried) == 2:
            break
    tried = tried or [(index.nlist, _CANDIDATES[-1])]
    probes, candidates = min(tried, key=lambda pair: pair[0] + _LISTS_PER_CANDIDATE * pair[1])
    return Probing(probes, candidates, round(found(probes, candidates), 4))


def _nearest(
    queries: Embeddings, stored: StoredRows, count: int
) -> tuple[NDArray[np.int64], Embeddings]:
    """Like `nearest_rows`, with few of the stored rows in memory."""
    found = [
        (rows + first, scores)
        for first, block in stored.blocks(_BLOCK)
        for rows, scores in [nearest_rows(queries, block, count)]
    ]
    rows, scores = (np.concatenate(column, axis=1) for column in zip(*found, strict=True))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)


def _needed_probes(
    index: Any, queries: Embeddings, stored: StoredRows, nearest: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns how many lists a query must read to find each of its neighbours, ascending."""
    rows, numbers = np.unique(nearest, return_inverse=True)
    _, lists_of = index.quantizer.search(np.array(stored.read(rows), np.float32), 1)
    _, order = index.quantizer.search(queries, index.nlist)
    ranks = np.argsort(order, axis=1)
    found = lists_of[numbers.reshape(nearest.shape), 0]
    return np.sort(np.take_along_axis(ranks, found, axis=1), axis=None) + 1


def _least_probes(
    needed: NDArray[np.int64], wanted: float, found: Callable[[int], float]
) -> int | None:
    """Returns the smallest number of lists with recall `wanted`; None if all lists give less.

    The recall is a little below the share of neighbours in the lists, because codes are rough.
    """
    share = wanted
    while (place := math.ceil(share * len(needed) - 1e-9)) <= len(needed):
        probes = int(needed[place - 1])
        recall = found(probes)
        if recall >= wanted:
            return probes
        share = max(
            share + wanted - recall, (np.searchsorted(needed, probes, "right") + 1) / len(needed)
        )
    return None
