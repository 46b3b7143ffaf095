"""Rows of an embedding table from the words that stand near each other.

Random rows have to learn from the objectives alone what every word means, and rare words are seen
too seldom for that. Rows that begin as word vectors know it before the first step: positive
pointwise mutual information of neighbouring words, factorised (Levy and Goldberg 2014; Levy et al.
2015, §3), by a randomised method (Halko et al. 2011, algorithm 4.4).
"""

import warnings

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.text.ragged import Ragged

_WINDOW = 5
"""Words are neighbours up to this distance d, and count 1/d."""
_FREQUENT = 1e-4
"""Words more frequent than this share of the text are skipped at random (Mikolov et al. 2013)."""
_SMOOTHING = 0.75
"""Exponent of the counts of contexts, against a bias for rare ones (Levy et al. 2015, §3.2)."""
_LEAST_NEIGHBOURS = 5
"""Words with fewer different neighbours get no row."""
_MOST_WORDS = 100_000
"""Number of most frequent words that get a row; bounds the memory."""
_CHUNK = 3_000_000
"""Ids counted at a time, at least."""
_OVERSAMPLING = 32
_ITERATIONS = 2


class Cooccurrences:
    """Counts of words that stand near each other in a text."""

    def __init__(self, words: int, seed: int, *, ranked: bool = True) -> None:
        """Counts the first of `words` ids.

        If they are `ranked`, in order of frequency, their frequencies follow Zipf's law; otherwise
        they are those in the texts so far.
        """
        self.words = min(words, _MOST_WORDS)
        self._generator = np.random.default_rng(seed)
        self._shares = _kept_shares(zipf(words)[: self.words])
        self._occurrences = None if ranked else np.zeros(self.words)
        self._counts = sp.csr_matrix((self.words, self.words), dtype=np.float32)
        self._waiting: list[Ragged] = []

    def add(self, texts: Ragged) -> None:
        """Counts the neighbours in each text."""
        kept = texts.ids < self.words
        ids = texts.ids[kept]
        if self._occurrences is not None and len(ids):
            self._occurrences += np.bincount(ids, minlength=self.words)
            self._shares = _kept_shares(self._occurrences / self._occurrences.sum())
        kept[kept] = self._generator.random(len(ids)) < self._shares[ids]
        self._waiting.append(texts.only(kept))
        if sum(len(each.ids) for each in self._waiting) >= _CHUNK:
            self._count()

    def _count(self) -> None:
        """Adds up the texts that wait: sums of large sparse matrices are worth few calls."""
        lengths = np.concatenate([each.lengths for each in self._waiting])
        ids = np.concatenate([each.ids for each in self._waiting])
        self._waiting.clear()
        owner = np.repeat(np.arange(len(lengths)), lengths)
        firsts, lasts, weights = [], [], []
        for distance in range(1, _WINDOW + 1):
            together = owner[:-distance] == owner[distance:]
            one, other = ids[:-distance][together], ids[distance:][together]
            firsts.append(np.minimum(one, other))
            lasts.append(np.maximum(one, other))
            weights.append(np.full(len(one), 1 / distance, np.float32))
        pairs = np.concatenate(firsts), np.concatenate(lasts)
        self._counts += sp.coo_matrix((np.concatenate(weights), pairs), self._counts.shape).tocsr()

    def most_frequent(self, count: int) -> NDArray[np.int64]:
        """Returns the ids of the `count` most frequent words, or of all if they are fewer."""
        return np.argsort(self._shares, kind="stable")[:count]

    def rows(self, width: int) -> NDArray[np.float32]:
        """Returns (words, width) float32, unit rows; zero rows for words with few neighbours."""
        if self._waiting:
            self._count()
        information = _positive_information(self._counts + self._counts.T)
        vectors = _factors(information, min(width, self.words), self._generator)
        rows = np.zeros((self.words, width), np.float32)
        rows[:, : vectors.shape[1]] = vectors
        rows[np.diff(information.indptr) < _LEAST_NEIGHBOURS] = 0
        return rows


def zipf(words: int) -> NDArray[np.float64]:
    """Returns (words,) the frequencies of words in order of frequency, by Zipf's law."""
    ranks = np.arange(1, words + 1)
    frequencies: NDArray[np.float64] = 1 / ranks / (1 / ranks).sum()
    return frequencies


def _kept_shares(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the share of the occurrences of each word that is not skipped."""
    shares: NDArray[np.float64] = np.sqrt(_FREQUENT / frequencies.clip(min=_FREQUENT))
    return shares


def _positive_information(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Returns the positive pointwise mutual information of words and smoothed contexts."""
    by_word = np.asarray(counts.sum(axis=1)).ravel()
    by_context = by_word**_SMOOTHING
    table = counts.tocoo()
    expected = by_word[table.row] * by_context[table.col] / by_context.sum()
    information = np.log(table.data / expected)
    positive = information > 0
    return sp.csr_matrix(
        (
            information[positive].astype(np.float32),
            (table.row[positive], table.col[positive]),
        ),
        shape=counts.shape,
    )


def _factors(
    matrix: sp.csr_matrix, width: int, generator: np.random.Generator
) -> NDArray[np.float32]:
    """Returns (rows, width) unit rows: left singular vectors times the roots of their values."""
    forward, backward = _as_torch(matrix), _as_torch(matrix.T.tocsr())
    sketch = min(width + _OVERSAMPLING, matrix.shape[0])
    noise = generator.standard_normal((matrix.shape[1], sketch), np.float32)
    basis = _orthonormal(forward @ torch.from_numpy(noise))
    for _ in range(_ITERATIONS):
        basis = _orthonormal(forward @ (backward @ basis))
    squares, left = _eigen(backward @ basis)
    vectors = (basis @ left)[:, :width] * squares[:width] ** 0.25  # the root of singular values
    return F.normalize(vectors, dim=1).numpy()


def _orthonormal(columns: Tensor) -> Tensor:
    """Returns an orthonormal basis of the space of (N, k) columns.

    By the eigenvectors of the (k, k) products of the columns, which takes half the time of a QR
    decomposition and is exact enough here: the columns are far from dependent.
    """
    squares, vectors = _eigen(columns)
    return columns @ (vectors / squares.clamp(min=1e-9 * squares[0]).sqrt())


def _eigen(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Returns eigenvalues, descending, and eigenvectors of the products of (N, k) columns."""
    values, vectors = torch.linalg.eigh((columns.T @ columns).double())
    return values.flip(0).clamp(min=0).float(), vectors.flip(1).float()


def _as_torch(matrix: sp.csr_matrix) -> Tensor:
    """Returns the matrix for torch, whose products use all threads."""
    starts, columns = (
        torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices)
    )
    with warnings.catch_warnings():  # sparse rows are "in beta state", for years
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, torch.from_numpy(matrix.data), matrix.shape)
