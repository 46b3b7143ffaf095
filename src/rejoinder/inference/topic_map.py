"""A map of topics: discs in the plane, near those of similar topics, with a place for each row.

t-SNE (van der Maaten & Hinton 2008) places the centres of topics, of which there are few. Rows are
placed in the disc of their topic: typical ones in the middle, others on the side of the topics that
they resemble, too. That takes a second for 100,000 rows; t-SNE or UMAP of rows takes minutes.
"""

from dataclasses import dataclass

import numpy as np

from rejoinder.errors import require
from rejoinder.inference.topics import BLOCK, EXTRA, TopicCentres
from rejoinder.measures import Floats, Indices
from rejoinder.protocols import Embeddings

_COVERED = 0.35
"""Share of the map that discs cover."""
_GAP = 1.06
"""Least distance of the centres of two discs, as a multiple of the sum of their radii."""
_ROUNDS = 500
"""Rounds in which discs that overlap move apart."""
_PERPLEXITY = 12
_SHARP = 8.0
"""Steepness of the weights of other topics by cosine."""
_LEANING = 0.4
"""Weight of the direction towards similar topics, next to that of a row itself."""
_NEAREST = 3
"""Topics between which a row without a topic is placed."""


@dataclass(frozen=True)
class TopicMap:
    """A disc for each of T topics, in the square from -1 to 1."""

    positions: Embeddings
    """(T, 2) float32: the middle of each disc."""
    radii: Embeddings
    """(T,) float32."""
    axes: Embeddings
    """(2, D) float32: directions by which rows of one topic are spread."""

    def place(self, rows: Embeddings, labels: Indices, centres: TopicCentres) -> Embeddings:
        """Returns (N, 2) float32: the places of rows.

        Args:
            rows: (N, D) float32, unit or zero rows.
            labels: (N,) int64: their topics. Rows without one, -1, lie between the nearest topics.
            centres: The topics.
        """
        places = np.zeros((len(rows), 2), np.float32)
        if len(centres):
            for low in range(0, len(rows), BLOCK):
                part = slice(low, low + BLOCK)
                places[part] = self._placed(rows[part], labels[part], centres)
        return np.clip(places, -1, 1)

    def _placed(self, rows: Embeddings, labels: Indices, centres: TopicCentres) -> Embeddings:
        cosines = centres.cosines(rows)
        each, found = np.arange(len(rows)), np.maximum(labels, 0)
        own = cosines[each, found]
        depth = _depth(own, centres.quantiles[found])
        others = cosines.copy()
        others[each, found] = -np.inf
        towards = _unit(_mixed(others, self.positions, len(centres)) - self.positions[found])
        aside = _unit((rows - centres.mean - own[:, None] * centres.centres[found]) @ self.axes.T)
        offset = (self.radii[found] * np.sqrt(depth))[:, None] * _unit(_LEANING * towards + aside)
        between = _mixed(cosines, self.positions, _NEAREST)
        placed: Embeddings = np.where(
            (labels >= 0)[:, None], self.positions[found] + offset, between
        )
        return placed


def map_of(centres: TopicCentres, sizes: Indices, seed: int = 0) -> TopicMap:
    """Returns a map of topics; the areas of discs are as the topics' `sizes`, (T,) int64.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    radii = np.sqrt(_COVERED * 4 / np.pi * sizes / max(sizes.sum(), 1))
    positions = _apart(_laid_out(centres.centres, seed), radii)
    low, high = (positions - radii[:, None]), (positions + radii[:, None])
    if len(sizes):
        middle = (low.min(axis=0) + high.max(axis=0)) / 2
        scale = max(float((high.max(axis=0) - low.min(axis=0)).max()) / 2, 1e-9)
        positions, radii = (positions - middle) / scale, radii / scale
    _, _, axes = np.linalg.svd(
        np.vstack([centres.centres, np.eye(2, len(centres.mean))]), full_matrices=False
    )
    return TopicMap(
        positions.astype(np.float32), radii.astype(np.float32), axes[:2].astype(np.float32)
    )


def _laid_out(centres: Embeddings, seed: int) -> Floats:
    """Returns (T, 2) places of centres, from -1 to 1: similar ones are near each other."""
    number = len(centres)
    if number < 4:
        return np.stack([np.linspace(-0.5, 0.5, number), np.zeros(number)], axis=1)
    require(EXTRA, "sklearn")
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (number - 1) / 3)
    way = TSNE(2, perplexity=perplexity, metric="cosine", init="pca", method="exact",
               random_state=seed)  # fmt: skip
    places: Floats = way.fit_transform(centres).astype(np.float64)
    places -= places.mean(axis=0)
    return places / max(float(np.abs(places).max()), 1e-9)


def _apart(positions: Floats, radii: Floats) -> Floats:
    """Returns positions of discs that do not overlap, as near as may be to the given ones."""
    least = _GAP * (radii[:, None] + radii)
    for _ in range(_ROUNDS):
        steps = positions[:, None] - positions
        distances = np.maximum(np.sqrt((steps**2).sum(axis=-1)), 1e-9)
        missing = np.maximum(least - distances, 0)
        np.fill_diagonal(missing, 0)
        if missing.max(initial=0) < 1e-4:
            break
        positions = positions + 0.25 * ((missing / distances)[..., None] * steps).sum(axis=1)
    return positions


def _depth(cosines: Embeddings, quantiles: Embeddings) -> Embeddings:
    """Returns the share of each topic's rows that are nearer to its centre than a row is.

    >>> _depth(np.array([0.5, 0.9]), np.array([[0.1, 0.5, 0.7], [0.1, 0.5, 0.7]]))
    array([0.5, 0. ])
    """
    last = quantiles.shape[1] - 1
    below = (quantiles[:, 1:-1] <= cosines[:, None]).sum(axis=1)
    each = np.arange(len(cosines))
    low, high = quantiles[each, below], quantiles[each, below + 1]
    part = np.clip((cosines - low) / np.maximum(high - low, 1e-9), 0, 1)
    depth: Embeddings = 1 - (below + part) / last
    return depth


def _mixed(cosines: Embeddings, positions: Embeddings, count: int) -> Embeddings:
    """Returns the mean of positions, weighted by how near the `count` nearest topics are."""
    count = min(count, cosines.shape[1])
    border = np.partition(cosines, -count, axis=1)[:, -count, None]
    weights = np.exp(_SHARP * (cosines - np.maximum(cosines.max(axis=1, keepdims=True), -1)))
    weights = np.where(cosines >= border, weights, 0)
    mixed: Embeddings = weights @ positions / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return mixed


def _unit(vectors: Embeddings) -> Embeddings:
    unit: Embeddings = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit
