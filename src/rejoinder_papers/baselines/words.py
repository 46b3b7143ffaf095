"""Baselines without word meanings: bags of words, tf-idf, and random vectors."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, require
from rejoinder.io.files.hashed import sha256_number
from rejoinder.protocols import Embeddings

_TOKEN = re.compile(r"\w+|[^\w\s]")
_DIM = 2_000
"""Number of words in an embedding: the most frequent of a task. A classifier on all words would
need gigabytes. Similarities of pairs use all words."""


def tokens(sentence: str) -> list[str]:
    """Returns the lower-cased words and punctuation marks of a sentence.

    >>> tokens("It's 5 o'clock!")
    ['it', "'", 's', '5', 'o', "'", 'clock', '!']
    """
    return _TOKEN.findall(sentence.lower())


def not_prepared(name: str) -> InputError:
    """Returns the error of a baseline that has to encode before `prepare`."""
    return InputError(
        f"baseline:{name} has no word counts yet; call prepare(task, sentences) first."
    )


class BagOfWords:
    """Binary vectors of words. Their cosine is the baseline of Cer et al. 2017, §5.3."""

    def __init__(self) -> None:
        self._columns: dict[str, int] | None = None

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        return {"name": "baseline:bow", "dim": _DIM, "max_tokens": None}

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Chooses the words that get a column in embeddings."""
        counts = Counter(word for text in dict.fromkeys(sentences) for word in set(tokens(text)))
        common = sorted(counts, key=lambda word: (-counts[word], word))[:_DIM]
        self._columns = {word: column for column, word in enumerate(common)}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, 2000) float32: 1 where a word is in the sentence, else 0.

        Raises:
            InputError: `prepare` was not called.
        """
        if self._columns is None:
            raise not_prepared("bow")
        out = np.zeros((len(sentences), _DIM), np.float32)
        for row, text in enumerate(sentences):
            columns = {self._columns[word] for word in tokens(text) if word in self._columns}
            out[row, list(columns)] = 1
        return out

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """Returns (N,) cosines of the binary vectors of all words; 0 where a sentence is empty."""
        similarities = np.zeros(len(first))
        for row, (left, right) in enumerate(zip(first, second, strict=True)):
            a, b = set(tokens(left)), set(tokens(right))
            if a and b:
                similarities[row] = len(a & b) / (len(a) * len(b)) ** 0.5
        return similarities


class TfIdf:
    """scikit-learn's tf-idf, fitted on the sentences of each task."""

    def __init__(self) -> None:
        require("eval", "sklearn")
        self._frequent: Any = None
        self._all: Any = None

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        return {"name": "baseline:tfidf", "dim": _DIM, "max_tokens": None}

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Counts the sentences with each word."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = list(dict.fromkeys(sentences))
        options = {"tokenizer": tokens, "token_pattern": None, "lowercase": False}
        self._all = TfidfVectorizer(**options).fit(texts)
        self._frequent = TfidfVectorizer(max_features=_DIM, **options).fit(texts)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, D) float32 tf-idf of the most frequent words, at most 2,000.

        Raises:
            InputError: `prepare` was not called.
        """
        if self._frequent is None:
            raise not_prepared("tfidf")
        return np.asarray(self._frequent.transform(sentences).toarray(), np.float32)

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """Returns (N,) cosines over all words.

        Raises:
            InputError: `prepare` was not called.
        """
        if self._all is None:
            raise not_prepared("tfidf")
        left, right = self._all.transform(first), self._all.transform(second)
        return np.asarray(left.multiply(right).sum(axis=1), np.float64).ravel()


class RandomVectors:
    """A normal random vector per sentence, seeded by its SHA-256: the scores of chance."""

    def describe(self) -> dict[str, object]:
        """Returns the identity of the baseline."""
        return {"name": "baseline:random", "dim": 300, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Returns (N, 300) float32."""
        out = np.empty((len(sentences), 300), np.float32)
        for row, text in enumerate(sentences):
            seed = sha256_number(text.encode("utf-8", "replace"), 8)
            out[row] = np.random.default_rng(seed).standard_normal(300)
        return out
