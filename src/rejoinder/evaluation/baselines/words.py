"""Baselines that know no word's meaning: bags of words, tf-idf, and chance."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.files.hashed import sha256_number
from rejoinder.protocols import Embeddings

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WIDTH = 2_000
"""Words of an encoded sentence, the most frequent of a task: a classifier on all of them would
need gigabytes. Similarities of pairs use all words."""


def tokens(sentence: str) -> list[str]:
    """Lower-cased words and punctuation marks.

    >>> tokens("It's 5 o'clock!")
    ['it', "'", 's', '5', 'o', "'", 'clock', '!']
    """
    return _TOKEN.findall(sentence.lower())


class BagOfWords:
    """Binary vectors of words; their cosine is the baseline of Cer et al. 2017, §5.3."""

    def __init__(self) -> None:
        self._places: dict[str, int] | None = None

    def describe(self) -> dict[str, object]:
        """Who this is."""
        return {"name": "baseline:bow", "dim": _WIDTH, "max_tokens": None}

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Choose the words that `encode` has places for."""
        counts = Counter(word for text in dict.fromkeys(sentences) for word in set(tokens(text)))
        common = sorted(counts, key=lambda word: (-counts[word], word))[:_WIDTH]
        self._places = {word: place for place, word in enumerate(common)}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, 2000) float32 zeros and ones.

        Raises:
            InputError: nothing was prepared.
        """
        if self._places is None:
            raise InputError("baseline:bow has no words yet; call prepare(task, sentences) first.")
        out = np.zeros((len(sentences), _WIDTH), np.float32)
        for row, text in enumerate(sentences):
            found = {self._places[word] for word in tokens(text) if word in self._places}
            out[row, list(found)] = 1
        return out

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """(N,) cosine of the binary vectors of all words; 0 with an empty one."""
        found = np.zeros(len(first))
        for row, (left, right) in enumerate(zip(first, second, strict=True)):
            a, b = set(tokens(left)), set(tokens(right))
            if a and b:
                found[row] = len(a & b) / (len(a) * len(b)) ** 0.5
        return found


class TfIdf:
    """scikit-learn's tf-idf, learned from the sentences of each task."""

    def __init__(self) -> None:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            raise MissingExtraError("scikit-learn", "eval") from None
        self._kind: Any = TfidfVectorizer
        self._narrow: Any = None
        self._wide: Any = None

    def describe(self) -> dict[str, object]:
        """Who this is."""
        return {"name": "baseline:tfidf", "dim": _WIDTH, "max_tokens": None}

    def prepare(self, _task: str, sentences: Sequence[str]) -> None:
        """Count in how many of the sentences each word is."""
        texts = list(dict.fromkeys(sentences))
        options = {"tokenizer": tokens, "token_pattern": None, "lowercase": False}
        self._wide = self._kind(**options).fit(texts)
        self._narrow = self._kind(max_features=_WIDTH, **options).fit(texts)

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, up to 2000) float32.

        Raises:
            InputError: nothing was prepared.
        """
        if self._narrow is None:
            raise InputError("baseline:tfidf has no counts yet; call prepare(task, sentences).")
        return np.asarray(self._narrow.transform(sentences).toarray(), np.float32)

    def similarity_pairs(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """(N,) cosine over all words.

        Raises:
            InputError: nothing was prepared.
        """
        if self._wide is None:
            raise InputError("baseline:tfidf has no counts yet; call prepare(task, sentences).")
        left, right = self._wide.transform(first), self._wide.transform(second)
        return np.asarray(left.multiply(right).sum(axis=1), np.float64).ravel()


class RandomVectors:
    """A normal vector a sentence, seeded by the SHA-256 of its text: chance, the same each time."""

    def describe(self) -> dict[str, object]:
        """Who this is."""
        return {"name": "baseline:random", "dim": 300, "max_tokens": None}

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """(N, 300) float32."""
        out = np.empty((len(sentences), 300), np.float32)
        for row, text in enumerate(sentences):
            seed = sha256_number(text.encode("utf-8", "replace"), 8)
            out[row] = np.random.default_rng(seed).standard_normal(300)
        return out
