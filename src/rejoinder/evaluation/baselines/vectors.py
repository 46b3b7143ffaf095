"""Baselines on word vectors of a file: their mean, SIF, soft cosine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.evaluation.baselines.words import tokens
from rejoinder.protocols import Embeddings

_SIF_WEIGHT = 1e-3
_POWER = 2
"""Of the cosines in the soft cosine (Charlet and Damnati 2017)."""


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors."""

    name: str
    places: dict[str, int]
    vectors: NDArray[np.float32]
    """(V, D) float32."""

    def rows(self, sentence: str) -> list[int]:
        """Places of the known words of a sentence, in its order."""
        found = []
        for word in tokens(sentence):
            place = self.places.get(word)
            if place is not None:
                found.append(place)
        return found


def read_vectors(path: Path) -> WordVectors:
    """Word vectors: word2vec as text or `.bin`, GloVe, fastText's `.vec`, compressed or not.

    Raises:
        InputError: the file is not there or of none of these forms.
        MissingExtraError: gensim, which reads them, is not installed.
    """
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        raise MissingExtraError("gensim", "eval") from None
    if not path.is_file():
        raise InputError(f"{path} is not there; a file of word vectors is needed.")
    binary = ".bin" in path.suffixes
    try:
        header = binary or _has_header(path)
        found = KeyedVectors.load_word2vec_format(
            str(path), binary=binary, no_header=not header, unicode_errors="replace"
        )
    except (ValueError, OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} can't be read as word vectors: {error}; word2vec text or .bin, GloVe or "
            "fastText .vec is needed."
        ) from None
    vectors = np.asarray(found.vectors, np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise InputError(f"{path}: the vector of {found.index_to_key[row]!r} is not finite.")
    # tokens are lower-cased: of "The" and "the" the lower one is looked up, either one otherwise
    places: dict[str, int] = {}
    for place, word in enumerate(found.index_to_key):
        if word == word.lower() or word.lower() not in found.key_to_index:
            places.setdefault(word.lower(), place)
    return WordVectors(path.name, places, vectors)


def _has_header(path: Path) -> bool:
    from smart_open import open as open_any

    with open_any(str(path), "rb") as file:
        first = file.readline(200).split()
    return len(first) == 2 and all(field.isdigit() for field in first)


class Averaged:
    """The mean of the word vectors; a sentence without a known word has the zero vector."""

    kind = "average"

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    def describe(self) -> dict[str, object]:
        """Who this is."""
        dim = self.vectors.vectors.shape[1]
        name = f"baseline:{self.kind}:{self.vectors.name}"
        return {"name": name, "dim": dim, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, D) float32."""
        return self._means(sentences)

    def _means(
        self, sentences: Sequence[str], weights: NDArray[np.float32] | None = None
    ) -> Embeddings:
        """Means of the vectors of known words, each times its weight if there are (V,) weights."""
        out = np.zeros((len(sentences), self.vectors.vectors.shape[1]), np.float32)
        for row, text in enumerate(sentences):
            found = self.vectors.rows(text)
            if found:
                vectors = self.vectors.vectors[found]
                weighted = vectors if weights is None else vectors * weights[found, None]
                out[row] = weighted.mean(axis=0)
        return out


class Sif(Averaged):
    """Smooth inverse frequency (Arora et al. 2017).

    Rare words weigh more, and the direction that all sentences of the task share is taken out.
    Frequencies are those within the task.
    """

    kind = "sif"

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__(vectors)
        self._weights: NDArray[np.float32] | None = None
        self._common = np.zeros(vectors.vectors.shape[1], np.float32)

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Count words and find the common direction."""
        counts: Counter[int] = Counter()
        for text in sentences:
            counts.update(self.vectors.rows(text))
        share = np.zeros(len(self.vectors.vectors), np.float32)
        share[list(counts)] = list(counts.values())
        share /= max(share.sum(), 1)
        self._weights = _SIF_WEIGHT / (_SIF_WEIGHT + share)
        rows = self._means(list(dict.fromkeys(sentences)), self._weights)
        _, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
        self._common = directions[:, -1].astype(np.float32)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, D) float32.

        Raises:
            InputError: nothing was prepared.
        """
        if self._weights is None:
            raise InputError("baseline:sif has no counts yet; call prepare(task, sentences).")
        rows = self._means(sentences, self._weights)
        return rows - np.outer(rows @ self._common, self._common)


class SoftCosine(Averaged):
    """SimBow (Charlet and Damnati 2017): a cosine of bags in which alike words are alike.

    x'My / sqrt(x'Mx · y'My), M the squared positive cosines of word vectors, x and y counts
    weighted by inverse document frequency in the task.
    """

    kind = "soft-cosine"

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__(vectors)
        lengths = np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
        self._unit = vectors.vectors / np.maximum(lengths, 1e-12)
        self._idf: dict[int, float] = {}
        self._most = 1.0

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Count in how many sentences each word is."""
        texts = list(dict.fromkeys(sentences))
        counts = Counter(row for text in texts for row in set(self.vectors.rows(text)))
        self._idf = {row: float(np.log(len(texts) / count)) for row, count in counts.items()}
        self._most = float(np.log(max(len(texts), 2)))

    def _bag(self, sentence: str) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Unit vectors of the different words, and their weights."""
        counts = Counter(self.vectors.rows(sentence))
        weights = [n * self._idf.get(row, self._most) for row, n in counts.items()]
        return self._unit[list(counts)], np.array(weights)

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """(N,) soft cosines; 0 where a sentence has no known word."""
        found = np.zeros(len(first))
        for row, (left, right) in enumerate(zip(first, second, strict=True)):
            (a, x), (b, y) = self._bag(left), self._bag(right)
            if not len(x) or not len(y):
                continue
            below = _form(a, x, a, x) * _form(b, y, b, y)
            if below > 0:
                found[row] = min(_form(a, x, b, y) / below**0.5, 1.0)
        return found


def _form(
    a: NDArray[np.float32], x: NDArray[np.float64], b: NDArray[np.float32], y: NDArray[np.float64]
) -> float:
    return float(x @ np.maximum(a @ b.T, 0) ** _POWER @ y)
