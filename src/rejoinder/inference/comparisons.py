"""`Comparisons`: the methods of an encoder that compare, rank and search sentences."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import InputError
from rejoinder.inference.inputs import (
    Sentences,
    as_matrix,
    as_texts,
    as_unit_rows,
    first_indices,
    whole_number,
)
from rejoinder.inference.outputs import ModelOutputs
from rejoinder.inference.search import Hit, Measure, dots, measured, nearest_rows
from rejoinder.protocols import Embeddings


class Comparisons(ABC):
    """Similarity, search and ranking on the outputs of a model."""

    _outputs: ModelOutputs

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimension D of the embeddings."""

    def similarity(
        self,
        a: Sentences | Embeddings,
        b: Sentences | Embeddings,
        measure: Measure = "cosine",
    ) -> NDArray[np.float32]:
        """Computes the similarity of each of `a` to each of `b`.

        Args:
            a: Sentences, or embeddings of any length (an array, or a tensor of torch). A single
                string counts as one sentence.
            b: Likewise.
            measure: `cosine`, from -1 to 1, or `angular`, which is -arccos of the cosine, from
                -pi to 0 (Yang et al. 2018, eq. 1).

        Returns:
            (len(a), len(b)) float32.

        Raises:
            InputError: the measure is unknown, or embeddings are not finite or of another
                dimension.
        """
        convert = measured(measure)
        return convert(self._vectors(a) @ self._vectors(b).T)

    def similarity_pairwise(
        self,
        a: Sentences | Embeddings,
        b: Sentences | Embeddings,
        measure: Measure = "cosine",
    ) -> NDArray[np.float32]:
        """Returns (N,) float32, the similarity of row i of `a` with row i of `b`.

        Arguments and errors are those of `similarity`.

        Raises:
            InputError: also if `a` and `b` differ in number.
        """
        convert = measured(measure)
        left, right = self._vectors(a), self._vectors(b)
        if len(left) != len(right):
            raise InputError(
                f"a has {len(left)} rows and b {len(right)}; pairs are needed. For all "
                "combinations use similarity(a, b)."
            )
        return convert((left * right).sum(axis=1, dtype=np.float64))

    def rank(
        self,
        input: str,  # noqa: A002
        responses: Sentences,
        top_k: int | None = None,
    ) -> list[Hit]:
        """Ranks responses by how well they answer `input`, the score u·v', best first.

        Returns the `top_k` best, by default all. Equal scores are ordered by index.

        Raises:
            InputError: `input` or a response is not a string, or `top_k` is not a whole number of
                at least 1.
        """
        if not isinstance(input, str):
            raise InputError(f"input must be one string; got a {type(input).__name__}.")
        if top_k is not None:
            top_k = whole_number("top_k", top_k)
        texts, _ = as_texts(responses)
        # the adaptation cancels out of u·v' except for rounding, so it is left out
        vectors = self._outputs.embed(texts, response=True)[0][first_indices(texts)]
        query = self._outputs.embed(as_texts(input)[0], adapted=False)[0]
        scores = dots(vectors, query[0])
        order = np.argsort(-scores, kind="stable")[:top_k].tolist()
        return [Hit(index, float(scores[index]), texts[index]) for index in order]

    def search(
        self, queries: Sentences | Embeddings, corpus: Sentences | Embeddings, top_k: int = 10
    ) -> list[list[Hit]]:
        """Returns for each query the `top_k` nearest of `corpus` by cosine, best first; exact.

        Queries and corpus are sentences, or embeddings as returned by `encode`; if the corpus is
        embeddings, the `text` of hits is empty. A single string counts as one query. Equal scores
        are ordered by index. Memory is bounded by the embeddings of the corpus.

        Raises:
            InputError: `top_k` is not a whole number of at least 1, or embeddings are not finite
                or of another dimension.
        """
        top_k = whole_number("top_k", top_k)  # before the corpus is encoded
        texts: list[str] | None = None
        given = as_matrix(corpus)
        if given is None:
            texts, _ = as_texts(corpus)
            matrix = self._vectors(texts)
        else:
            matrix = as_unit_rows(given, self.dim)
        if texts is not None:  # equal texts in different batches may differ in the last bit
            first = first_indices(texts)
            again = np.flatnonzero(first != np.arange(len(first)))
            matrix[again] = matrix[first[again]]
        indices, scores = nearest_rows(self._vectors(queries), matrix, top_k)
        return [
            [
                Hit(index, score, "" if texts is None else texts[index])
                for index, score in zip(*hits, strict=True)
            ]
            for hits in zip(indices.tolist(), scores.tolist(), strict=True)
        ]

    def _vectors(self, values: Sentences | Embeddings) -> Embeddings:
        """Returns the embeddings of sentences, or given embeddings scaled to length 1."""
        matrix = as_matrix(values)
        if matrix is not None:
            return as_unit_rows(matrix, self.dim)
        return self._outputs.embed(as_texts(values)[0])[0]
