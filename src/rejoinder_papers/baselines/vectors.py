"""Baselines on word vectors from a file: their mean, SIF, and soft cosine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, require
from rejoinder.measures import Floats
from rejoinder.protocols import Embeddings
from rejoinder_papers.baselines.words import not_prepared, tokens

_SIF_WEIGHT = 1e-3
"""Smoothing of word frequencies in SIF (Arora et al. 2017)."""
_POWER = 2
"""Exponent of the cosines in the soft cosine (Charlet and Damnati 2017)."""


@dataclass(frozen=True)
class WordVectors:
    """The words and vectors of the file `name`."""

    name: str
    ids: dict[str, int]
    """The row of each word."""
    vectors: NDArray[np.float32]
    """(V, D) float32."""

    def known(self, sentence: str) -> list[int]:
        """Returns the rows of a sentence's known words, in order."""
        return [self.ids[word] for word in tokens(sentence) if word in self.ids]


def read_vectors(path: Path) -> WordVectors:
    """Reads word vectors: word2vec text or `.bin`, GloVe or fastText `.vec`, compressed or not.

    Raises:
        InputError: the file is missing, or has none of these formats.
        MissingExtraError: gensim, which reads the file, is not installed.
    """
    require("eval", "gensim")
    from gensim.models import KeyedVectors

    if not path.is_file():
        raise InputError(f"{path} does not exist; name a file of word vectors.")
    binary = ".bin" in path.suffixes
    try:
        header = binary or _has_header(path)
        read = KeyedVectors.load_word2vec_format(
            str(path), binary=binary, no_header=not header, unicode_errors="replace"
        )
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} can't be read as word vectors: {error}. Name a file of word2vec (text or "
            ".bin), GloVe or fastText (.vec)."
        ) from None
    vectors = np.asarray(read.vectors, np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise InputError(f"{path}: the vector of {read.index_to_key[row]!r} is not finite.")
    # tokens are lower case: "The" is used for "the" only if "the" is not in the file
    ids: dict[str, int] = {}
    for row, word in enumerate(read.index_to_key):
        if word == word.lower() or word.lower() not in read.key_to_index:
            ids.setdefault(word.lower(), row)
    return WordVectors(path.name, ids, vectors)


def _has_header(path: Path) -> bool:
    from smart_open import open as open_any

    with open_any(str(path), "rb") as file:
        first = file.readline(200).split()
    return len(first) == 2 and all(field.isdigit() for field in first)


class Averaged:
    """The mean of the word vectors. A sentence without a known word has the zero vector."""

    kind = "average"

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    @classmethod
    def load(cls, path: Path) -> Self:
        """Returns the baseline for a file of word vectors. Raises what `read_vectors` raises."""
        return cls(read_vectors(path))

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        dim = self.vectors.vectors.shape[1]
        name = f"baseline:{self.kind}:{self.vectors.name}"
        return {"name": name, "dim": dim, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32."""
        return self._means(sentences)

    def _means(
        self, sentences: Sequence[str], weights: NDArray[np.float32] | None = None
    ) -> Embeddings:
        """Returns (N, D) means of the vectors of known words, times their (V,) weights."""
        out = np.zeros((len(sentences), self.vectors.vectors.shape[1]), np.float32)
        for row, text in enumerate(sentences):
            words = self.vectors.known(text)
            if words:
                vectors = self.vectors.vectors[words]
                weighted = vectors if weights is None else vectors * weights[words, None]
                out[row] = weighted.mean(axis=0)
        return out


class Sif(Averaged):
    """Smooth inverse frequency (Arora et al. 2017).

    Rare words have larger weights, and the first principal direction of the task's sentences is
    removed. Word frequencies are counted within the task.
    """

    kind = "sif"

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__(vectors)
        self._weights: NDArray[np.float32] | None = None
        self._common = np.zeros(vectors.vectors.shape[1], np.float32)

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Counts words and computes the common direction."""
        counts: Counter[int] = Counter()
        for text in sentences:
            counts.update(self.vectors.known(text))
        share = np.zeros(len(self.vectors.vectors), np.float32)
        share[list(counts)] = list(counts.values())
        share /= max(share.sum(), 1)
        self._weights = _SIF_WEIGHT / (_SIF_WEIGHT + share)
        rows = self._means(list(dict.fromkeys(sentences)), self._weights)
        _, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
        self._common = directions[:, -1].astype(np.float32)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32.

        Raises:
            InputError: `prepare` was not called.
        """
        if self._weights is None:
            raise not_prepared("sif")
        rows = self._means(sentences, self._weights)
        return rows - np.outer(rows @ self._common, self._common)


class SoftCosine(Averaged):
    """SimBow (Charlet and Damnati 2017): a cosine of bags of words that compares similar words.

    The similarity is x'My / sqrt(x'Mx · y'My). M holds the squared positive cosines of word
    vectors; x and y are word counts weighted by inverse document frequency in the task.
    """

    kind = "soft-cosine"

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__(vectors)
        lengths = np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
        self._unit = vectors.vectors / np.maximum(lengths, 1e-12)
        self._idf: dict[int, float] = {}
        self._unseen_idf = 1.0

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Counts the sentences with each word."""
        texts = list(dict.fromkeys(sentences))
        counts = Counter(row for text in texts for row in set(self.vectors.known(text)))
        self._idf = {row: float(np.log(len(texts) / count)) for row, count in counts.items()}
        self._unseen_idf = float(np.log(max(len(texts), 2)))

    def _bag(self, sentence: str) -> tuple[NDArray[np.float32], Floats]:
        """Returns (W, D) unit vectors of the W different words, and their (W,) weights."""
        counts = Counter(self.vectors.known(sentence))
        weights = [n * self._idf.get(row, self._unseen_idf) for row, n in counts.items()]
        return self._unit[list(counts)], np.array(weights)

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> Floats:
        """Returns (N,) soft cosines; 0 where a sentence has no known word."""
        similarities = np.zeros(len(first))
        for row, (left, right) in enumerate(zip(first, second, strict=True)):
            (a, x), (b, y) = self._bag(left), self._bag(right)
            if not len(x) or not len(y):
                continue
            squares = _product(a, x, a, x) * _product(b, y, b, y)
            if squares > 0:
                similarities[row] = min(_product(a, x, b, y) / squares**0.5, 1.0)
        return similarities


def _product(a: NDArray[np.float32], x: Floats, b: NDArray[np.float32], y: Floats) -> float:
    """Returns x'My for the bags of vectors `a` with weights `x` and `b` with weights `y`."""
    return float(x @ np.maximum(a @ b.T, 0) ** _POWER @ y)
