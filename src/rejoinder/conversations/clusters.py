"""Finds topics among rows, as communities in the graph of nearest neighbours, and wider topics.

Leiden (Traag et al. 2019) finds the communities. They agree with labels better than clusters of
k-means, HDBSCAN and similar methods, and change less when rows are added
(`notebook/decisions/libraries.md`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import unit_rows
from rejoinder.errors import require
from rejoinder.inference.neighbours import Progress, nearest_others
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings

EXTRA = "explore"
_NEIGHBOURS = 15
_DIMENSIONS = 128
"""Principal components by which neighbours are searched: as good as all, and four times as fast."""
_RESOLUTION = 4.0
"""Best on customer intents (CLINC150, Banking77); see `notebook/explore.md`."""
_LEAST_JOINED = 8
"""Number of topics from which wider ones are formed."""
_TRIES = 10
"""Resolutions that are tried to reach a number of topics."""
BLOCK = 8_192
_TYPICAL, _ALIKE = 3, 0.9
"""Number of typical rows of a topic, and the cosine from which two rows are too alike."""
_LENGTHS = 4, 40
"""Number of words in a typical row, if such rows exist."""
_QUANTILES = 21
_QUARTERS = 5, 15
"""Places of the quartiles in these."""
_NEAR = 0.6
_ROUNDING = 1e-5


@dataclass(frozen=True)
class TopicCentres:
    """T topics of rows, the largest first."""

    centres: Embeddings
    """(T, D) float32, unit rows: means of the topics' rows, from which `mean` was subtracted."""
    mean: Embeddings
    """(D,) float32: the mean of all rows."""
    quantiles: Embeddings
    """(T, 21) float32: quantiles of the cosines of a topic's rows with its centre, in 5 % steps."""

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def borders(self) -> Embeddings:
        """(T,) float32: the least cosine at which a row is not an outlier of the topic.

        It is Tukey's fence, or `_NEAR` where all rows of a topic are nearer than that.
        """
        low, high = (self.quantiles[:, place] for place in _QUARTERS)
        borders: Embeddings = np.minimum(low - 1.5 * (high - low), np.float32(_NEAR))
        return borders

    def cosines(self, rows: Embeddings) -> Embeddings:
        """Returns (N, T) float32: cosines of rows with the centres."""
        cosines: Embeddings = unit_rows(rows - self.mean) @ self.centres.T
        return cosines

    def only(self, kept: NDArray[np.bool_], labels: Indices) -> tuple["TopicCentres", Indices]:
        """Returns the topics that are `kept`, (T,) bool, and (N,) labels renumbered for them."""
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        left = TopicCentres(self.centres[kept], self.mean, self.quantiles[kept])
        return left, np.append(numbers, -1)[labels]

    def nearest(self, rows: Embeddings) -> Indices:
        """Returns (N,) int64: the nearest topic of each row; -1 if the row is an outlier there.

        Args:
            rows: (N, D) float32, unit or zero rows. Zero rows have no topic.
        """
        found = np.full(len(rows), -1, np.int64)
        if not len(self):
            return found
        for low in range(0, len(rows), BLOCK):
            part = rows[low : low + BLOCK]
            cosines = self.cosines(part)
            best = cosines.argmax(axis=1)
            near = cosines[np.arange(len(part)), best] >= self.borders[best]
            found[low : low + BLOCK] = np.where(near & part.any(axis=1), best, -1)
        return found


def find_topics(
    rows: Embeddings,
    count: int | None = None,
    *,
    least: int = 10,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = lambda _done, _all: None,
) -> tuple[TopicCentres, Indices]:
    """Finds the topics of distinct rows.

    The same rows, numbers and seed give the same topics.

    Args:
        rows: (N, D) float32, unit rows.
        count: About how many topics to find. Default: as many as the data has at one resolution.
        least: The least number of rows in a topic.
        seed: Seed of Leiden.
        workers: Number of CPU cores.
        progress: Called with the progress of the neighbour search.

    Returns:
        The topics, and (N,) int64: the topic of each row, or -1.

    Raises:
        MissingExtraError: graspologic-native or SciPy is not installed.
    """
    require(EXTRA, "graspologic_native", "scipy")
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32) if len(rows) else rows.sum(axis=0)
    if len(rows) < max(least, 3):
        return _topics_of(rows, mean, np.full(len(rows), -1))
    graph = _graph(*nearest_others(_reduced(rows - mean), _NEIGHBOURS, workers, progress))
    if count is None:
        labels = _communities(graph, _RESOLUTION, seed)
    else:
        labels = _as_many(graph, count, least, seed)
    return _topics_of(rows, mean, _ordered(labels, least))


def wider_topics(topics: TopicCentres) -> Indices:
    """Returns (T,) int64: the wider topic of each topic, from 0 on; -1 if it would be alone in it.

    Their number is about the square root of T. Ward's method joins topics with nearby centres.
    """
    alone = np.full(len(topics), -1, np.int64)
    if len(topics) < _LEAST_JOINED:
        return alone
    from scipy.cluster.hierarchy import fcluster, linkage

    joined = linkage(topics.centres.astype(np.float64), "ward")
    found = fcluster(joined, round(len(topics) ** 0.5), "maxclust")
    numbers, firsts, sizes = np.unique(found, return_index=True, return_counts=True)
    order = numbers[sizes > 1][np.argsort(firsts[sizes > 1])]
    for number, one in enumerate(order.tolist()):
        alone[found == one] = number
    return alone


def _topics_of(rows: Embeddings, mean: Embeddings, labels: Indices) -> tuple[TopicCentres, Indices]:
    """Returns topics from labels. Outliers, and rows without a label, go to the nearest topic."""
    count = int(labels.max(initial=-1)) + 1
    centres = np.zeros((count, rows.shape[1]), np.float32)
    quantiles = np.zeros((count, _QUANTILES), np.float32)
    own = np.full(len(rows), -np.inf, np.float32)
    for topic in range(count):
        members = labels == topic
        parts = unit_rows(rows[members] - mean)
        centres[topic] = unit_rows(parts.mean(axis=0)[None])[0]
        own[members] = parts @ centres[topic]
        quantiles[topic] = np.quantile(own[members], np.linspace(0, 1, _QUANTILES))
    topics = TopicCentres(centres, mean, quantiles)
    out = np.flatnonzero((labels < 0) | (own < np.append(topics.borders, 0)[labels] - _ROUNDING))
    labels = labels.copy()
    labels[out] = topics.nearest(rows[out])
    return topics, labels


def _reduced(rows: Embeddings) -> Embeddings:
    """Returns the first principal components of rows whose mean is zero, as unit rows."""
    if rows.shape[1] > _DIMENSIONS:
        _, vectors = np.linalg.eigh(rows.T @ rows)
        rows = rows @ vectors[:, ::-1][:, :_DIMENSIONS]
    return np.ascontiguousarray(unit_rows(rows), np.float32)


def _graph(neighbours: Indices, cosines: Embeddings) -> Any:
    """Returns a symmetric (N, N) matrix of SciPy: squared cosines of neighbours."""
    from scipy.sparse import csr_matrix

    number, count = neighbours.shape
    known = neighbours.ravel() >= 0  # lists may be shorter
    rows = np.repeat(np.arange(number), count)[known]
    weights = np.maximum(cosines.ravel()[known].astype(np.float64), 0.01) ** 2
    one_way = csr_matrix((weights, (rows, neighbours.ravel()[known])), (number, number))
    graph = (one_way + one_way.T).tocsr()
    graph.sort_indices()
    return graph


def _communities(graph: Any, resolution: float, seed: int) -> Indices:
    """Returns (N,) int64: the community of each row of a graph."""
    from graspologic_native import leiden_csr

    _, found = leiden_csr(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int32),
        graph.data,
        graph.shape[0],
        resolution=resolution,
        iterations=2,
        seed=seed,
    )
    return np.fromiter(map(found.__getitem__, range(graph.shape[0])), np.int64, graph.shape[0])


def _as_many(graph: Any, count: int, least: int, seed: int) -> Indices:
    """Returns about `count` communities, by bisection of the resolution."""
    low, high = 1 / 64, float(graph.shape[0])
    best, off = np.empty(0, np.int64), graph.shape[0]
    for _ in range(_TRIES):
        middle = float(np.sqrt(low * high))
        labels = _communities(graph, middle, seed)
        found = int(_ordered(labels, least).max()) + 1
        many = len(np.unique(labels)) > count
        if not len(best) or abs(found - count) < off:
            best, off = labels, abs(found - count)
        if found == count:
            break
        low, high = (low, middle) if many else (middle, high)
    return best


def _ordered(labels: Indices, least: int) -> Indices:
    """Renumbers communities by falling size; communities below `least` rows become -1.

    >>> _ordered(np.array([4, 2, 2, 4, 2, 9]), 2).tolist()
    [1, 0, 0, 1, 0, -1]
    """
    sizes: NDArray[np.int64] = np.bincount(labels)
    numbers = np.full(len(sizes), -1, np.int64)
    order = np.argsort(-sizes, kind="stable")
    kept = order[sizes[order] >= least]
    numbers[kept] = np.arange(len(kept))
    return numbers[labels]


def typical_rows(rows: Embeddings, centre: Embeddings, lengths: Indices) -> list[int]:
    """Returns the rows nearest to a centre that differ from each other, and are not short or long.

    Args:
        rows: (M, D) float32: the rows of a topic.
        centre: (D,) float32.
        lengths: (M,) int64: the number of words of each row.
    """
    handy = (lengths >= _LENGTHS[0]) & (lengths <= _LENGTHS[1])
    places = np.flatnonzero(handy if handy.any() else ~handy)
    places = places[np.argsort(-(rows[places] @ centre), kind="stable")]
    chosen: list[int] = []
    for place in places.tolist():
        if all(rows[place] @ rows[other] < _ALIKE for other in chosen):
            chosen.append(place)
        if len(chosen) == _TYPICAL:
            break
    return chosen
