"""Inverted lists of a segment's rows in product codes (FAISS): candidates of approximate search.

A row lies in the list of its nearest centroid as 4-bit codes of pairs of dimensions of its
difference from the centroid (Jégou et al. 2011, §4; André et al. 2015 for the scan of 4-bit codes).
A query is compared with the codes of its nearest lists. Whoever searches computes the true scores
of the best rows, so that codes decide which rows are looked at, not in which order they come.
"""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, require
from rejoinder.index.manifest import REMEDY, Probing
from rejoinder.inference.search import dots, nearest_rows
from rejoinder.io.files.hashed import check_file
from rejoinder.protocols import Embeddings

FILE = "lists.faiss"
LEAST_ROWS = 200_000
"""Rows from which a segment gets lists. A scan of fewer takes milliseconds."""
EXTRA, PACKAGE = "index", "faiss"
_LISTS_PER_CANDIDATE = 0.2
"""Time of an exact score, in times of a list's codes: at a million rows 0.4 of 2 microseconds."""
_CANDIDATES = (100, 200, 400, 800)
"""Numbers of rows per query whose true scores are computed, tried for a recall."""

_SAMPLE_PER_LIST, _LEAST_SAMPLE = 40, 65_536
_STRETCH = 256
"""Rows of the sample that lie side by side: reading single ones would read all pages."""
_BLOCK = 65_536
_MOST_CODES = 256
"""Codes per row. More find little more and take longer."""
_JUDGED, _JUDGED_HITS = 1_024, 10
"""Rows whose neighbours are searched to choose the number of probes, and neighbours of each."""
_MARGIN = 0.003
"""What recall of the rows judged must exceed the recall asked for: twice its standard error."""


def write_lists(folder: Path, embeddings: Embeddings, recall: float) -> Probing:
    """Writes `lists.faiss` for rows, and chooses how much of it a query reads.

    That is the least that finds the share `recall` of the ten nearest neighbours of rows of the
    segment. The same rows give the same file with one thread; with more, the order in
    which FAISS sums may change a last digit, and so a centroid.

    Args:
        folder: Where to write it.
        embeddings: (N, D) float32 or float16, N at least 2.
        recall: From 0 to 1.

    Raises:
        MissingExtraError: FAISS is not installed.
    """
    require(EXTRA, PACKAGE)
    import faiss

    rows, dim = embeddings.shape
    count = _list_count(rows)
    sample = _sample(embeddings, max(_LEAST_SAMPLE, _SAMPLE_PER_LIST * count))
    centroids = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFPQFastScan(
        centroids, dim, count, _code_count(dim), 4, faiss.METRIC_INNER_PRODUCT
    )
    index.by_residual = True
    index.cp.niter, index.cp.seed, index.cp.spherical = 6, 1, True
    index.cp.max_points_per_centroid = 10**6
    index.train(sample)
    for begin in range(0, rows, _BLOCK):
        index.add(np.ascontiguousarray(embeddings[begin : begin + _BLOCK], np.float32))
    faiss.write_index(index, str(folder / FILE))
    return _chosen(index, embeddings, recall)


class Lists:
    """The lists of a segment, read when they are first searched."""

    def __init__(self, path: Path, facts: object, shape: tuple[int, ...], probing: Probing) -> None:
        """Prepares to read the lists of rows of `shape` from a file with `facts` (`check_file`)."""
        self._path, self._facts, self._shape, self.probing = path, facts, shape, probing

    def candidates(
        self, queries: Embeddings, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns for each query `count` rows that may be the nearest, and rough scores.

        Returns:
            (Q, `count`) int64 rows, -1 where the lists probed hold fewer, and float32 scores.

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

        # FAISS trusts what it reads: a changed byte gave other results, or ended the process
        check_file(self._path, self._facts, InputError, REMEDY)
        damaged = InputError(f"{self._path} holds no lists of this segment. {REMEDY}")
        try:
            index = faiss.read_index(str(self._path))
        except RuntimeError:
            raise damaged from None
        if (index.ntotal, index.d) != self._shape or not hasattr(index, "nprobe"):
            raise damaged
        index.nprobe = self.probing.probes
        return index


def _list_count(rows: int) -> int:
    """Returns the power of two that is nearest below the square root of `rows` or above it."""
    return int(2 ** round(np.log2(rows) / 2))


def _code_count(dim: int) -> int:
    """Returns the largest divisor of `dim` that is neither above `dim` / 2 nor too many."""
    most = min(max(dim // 2, 1), _MOST_CODES)
    return next(number for number in range(most, 0, -1) if dim % number == 0)


def _sample(embeddings: Embeddings, size: int) -> NDArray[np.float32]:
    """Returns stretches of rows from all over, about `size` rows, as float32."""
    if len(embeddings) <= size:
        return np.array(embeddings, np.float32)
    begins = np.linspace(0, len(embeddings) - _STRETCH, size // _STRETCH).astype(np.int64)
    return np.concatenate(
        [np.asarray(embeddings[begin : begin + _STRETCH], np.float32) for begin in begins]
    )


def _chosen(index: Any, embeddings: Embeddings, recall: float) -> Probing:
    """Returns the numbers of candidates and of probes that reach a recall soonest."""
    places = np.linspace(0, len(embeddings) - 1, min(_JUDGED, len(embeddings))).astype(np.int64)
    queries = np.array(embeddings[places], np.float32)
    hits = _JUDGED_HITS + 1  # a row's nearest neighbour is itself
    _, exact = nearest_rows(queries, embeddings, hits)

    def found(probes: int, candidates: int) -> float:
        index.nprobe = probes
        _, rows = index.search(queries, candidates)
        best = np.full((len(queries), hits), -np.inf, np.float32)
        for number, query in enumerate(queries):
            kept = rows[number][rows[number] >= 0]
            scores = -np.sort(-dots(np.asarray(embeddings[kept], np.float32), query))[:hits]
            best[number, : len(scores)] = scores
        return float((best[:, 1:] >= exact[:, -1:] - 1e-6).mean())

    wanted = min(recall + _MARGIN, 1.0)
    # codes are too rough for few candidates if a search of all lists misses rows
    first = next(
        (n for n, count in enumerate(_CANDIDATES[:-1]) if found(index.nlist, count) >= wanted),
        len(_CANDIDATES) - 1,
    )
    # the fewest candidates that suffice may need most lists; more of them, far fewer lists
    tried = [
        (_least_probes(index.nlist, wanted, partial(found, candidates=count)), count)
        for count in _CANDIDATES[first : first + 2]
    ]
    probes, candidates = min(tried, key=lambda pair: pair[0] + _LISTS_PER_CANDIDATE * pair[1])
    return Probing(probes, candidates, round(found(probes, candidates), 4))


def _least_probes(lists: int, wanted: float, found: Callable[[int], float]) -> int:
    """Returns the least number of lists, to about a thirty-second, with the recall `wanted`."""
    few, probes = 0, 1
    while found(probes) < wanted and probes < lists:
        few, probes = probes, min(2 * probes, lists)
    while probes - few > max(few // 32, 1):
        middle = (few + probes) // 2
        few, probes = (few, middle) if found(middle) >= wanted else (middle, probes)
    return probes
