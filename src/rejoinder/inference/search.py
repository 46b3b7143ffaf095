"""Similarity, ranking, and exact nearest-neighbour search in blocks of bounded memory.

The embedding of a message together with the turns before it.

The sum of the message's embedding and those of the turns, each weighed less the farther back it is.
The numbers were chosen on dev threads of six corpora (docs/measurements/context.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array, unit_rows
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
from rejoinder.measures import Indices, angular_similarity
from rejoinder.protocols import Embeddings

Measure = Literal["cosine", "angular"]
"""A similarity: the cosine, from -1 to 1, or -arccos of it, from -pi to 0."""

_QUERY_BLOCK = 256
"""Queries per block. With `_BLOCK_SCORES` it bounds the memory used."""
_BLOCK_SCORES = 1 << 22
"""Scores held in memory at a time."""
_MARGIN = np.float32(1e-5)
"""More than the rounding error of a float32 matrix product of unit rows."""


class NotFiniteError(InputError):
    """A score is not finite: queries or rows hold NaN, infinities or huge numbers."""


@dataclass(frozen=True)
class Hit:
    """A result of `SentenceEncoder.search` or `SentenceEncoder.rank`."""

    index: int
    """Position in the corpus or in the responses, from 0."""
    score: float
    text: str
    """The text at that position. Empty if embeddings were searched."""


def measured(measure: Measure) -> Callable[[NDArray[np.floating]], Array]:
    """Returns the function that turns cosines into a similarity, in float32.

    Rounding may have put cosines outside [-1, 1].

    Raises:
        InputError: the measure is unknown.
    """
    if not isinstance(measure, str) or measure not in ("cosine", "angular"):
        raise InputError(f"measure must be 'cosine' or 'angular'; got {measure!r}.")

    def convert(cosine: NDArray[np.floating]) -> Array:
        cosine = np.clip(cosine, -1.0, 1.0)
        # zero is added to turn -0.0 into 0.0
        values = cosine if measure == "cosine" else angular_similarity(cosine) + 0.0
        return np.asarray(values, np.float32)

    return convert


def nearest_rows(
    queries: Array, corpus: Array, top_k: int, *, absent: NDArray[np.bool_] | None = None
) -> tuple[Indices, Array]:
    """Finds for each query the `top_k` rows of `corpus` with the highest dot product.

    Equal scores are ordered by index, the lower first. A matrix product can round a row
    differently depending on its position in the matrix, so it only selects candidates. Their
    scores are then computed row by row. Equal rows therefore have equal scores, and no result
    depends on the other queries.

    Args:
        queries: (Q, D) float32, unit or zero rows.
        corpus: (N, D) float32 or float16, unit or zero rows.
        top_k: Number of rows per query, at least 1.
        absent: (N,) bool, rows that are not found.

    Returns:
        (Q, K) int64 row indices and (Q, K) float32 scores, best first. K is `top_k`, or the number
        of rows that can be found if these are fewer.

    Raises:
        InputError: `top_k` is not a whole number of at least 1, or the dimensions differ.
        NotFiniteError: a score is not finite.
    """
    top_k = whole_number("top_k", top_k)
    if queries.shape[1:] != corpus.shape[1:]:
        raise InputError(
            f"queries of shape {queries.shape} and a corpus of shape {corpus.shape} differ in "
            "dimension."
        )
    present = len(corpus) - (0 if absent is None else int(absent.sum()))
    count = min(top_k, present)
    best = [_Best(query, count) for query in queries] if count else []
    # where most rows are absent, the others are copied
    rows = np.flatnonzero(~absent) if absent is not None and 2 * present < len(corpus) else None
    with np.errstate(over="ignore", invalid="ignore"):  # such scores are refused
        for start in range(0, len(queries), _QUERY_BLOCK):
            query_block = queries[start : start + _QUERY_BLOCK]
            step = max(_BLOCK_SCORES // len(query_block), 1)
            for low in range(0, len(corpus) if rows is None else present, step):
                part = slice(low, low + step)
                given = corpus[part] if rows is None else corpus.take(rows[part], axis=0)
                block = np.asarray(given, np.float32)
                products = query_block @ block.T
                # the sum is finite only if every score is, and needs no array of truth values
                if not math.isfinite(products.sum()):
                    raise NotFiniteError(
                        "the queries or the rows to search hold a number that is not finite."
                    )
                if absent is not None and rows is None:
                    products[:, absent[part]] = -np.inf
                for query_best, scores in zip(best[start:], products, strict=False):
                    query_best.add(scores, block, low)
    if not best:
        return np.empty((len(queries), count), np.int64), np.empty(
            (len(queries), count), np.float32
        )
    indices = np.stack([each.indices for each in best])
    scores = np.stack([each.scores for each in best])
    return indices if rows is None else rows[indices], scores


def dots(rows: Array, vector: Array) -> Array:
    """Returns the (N,) float32 dot products of `rows` (N, D) with `vector` (D,).

    Each product is the same whatever the other rows are, which a matrix product does not ensure.

    >>> dots(np.eye(2, dtype=np.float32), np.array([3, 4], np.float32)).tolist()
    [3.0, 4.0]
    """
    return np.asarray(np.einsum("ij,j->i", rows, vector))  # a sixth of the time of a sum


@dataclass(slots=True)
class _Best:
    """The best rows found so far for one query."""

    query: Array
    count: int
    indices: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Array = field(default_factory=lambda: np.empty(0, np.float32))

    def add(self, scores: Array, block: Array, low: int) -> None:
        """Adds rows of a block (B, D) of the corpus, which begins at the row `low`.

        `scores` (B,) come from a matrix product.
        """
        candidates = self._candidates(scores)
        indices = np.concatenate([self.indices, candidates + low])
        exact = np.concatenate([self.scores, dots(block.take(candidates, axis=0), self.query)])
        order = np.lexsort((indices, -exact))[: self.count]
        self.indices, self.scores = indices[order], exact[order]

    def _candidates(self, scores: Array) -> Indices:
        """Returns indices of rows that can be among the best, allowing for rounding."""
        # absent rows have -inf, less than the least number
        least = self.scores[-1] if len(self.scores) == self.count else np.finfo(np.float32).min
        indices = np.flatnonzero(scores >= least - _MARGIN)
        if len(indices) > 4 * self.count:
            rough = scores[indices]
            border = np.partition(rough, -self.count)[-self.count]
            indices = indices[rough >= border - 2 * _MARGIN]
        return indices


class Comparisons:
    """Similarity, search and ranking on the outputs of a model."""

    dim: int
    """Dimension D of the embeddings."""
    _outputs: ModelOutputs

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
                f"a has {len(left)} rows and b {len(right)}; pairs need as many of each. For all "
                "combinations call similarity(a, b)."
            )
        return convert((left * right).sum(axis=1, dtype=np.float64))

    def rank(
        self,
        input: str,  # noqa: A002
        responses: Sentences,
        top_k: int | None = None,
        *,
        context: Sentences = (),
    ) -> list[Hit]:
        """Ranks responses by how well they answer `input`, the score u·v', best first.

        Args:
            input: The message.
            responses: N responses.
            top_k: Number of responses to return. Default: all.
            context: The turns of the conversation before the message, the oldest first; the last
                five are read, those farther back with less weight.

        Returns:
            The best responses. Equal scores are ordered by index.

        Raises:
            InputError: `input`, a response or a turn is not a string, or `top_k` is not a whole
                number of at least 1.
        """
        if not isinstance(input, str):
            raise InputError(f"input must be one string; got a {type(input).__name__}.")
        if top_k is not None:
            top_k = whole_number("top_k", top_k)
        texts, _ = as_texts(responses)
        # the adaptation cancels out of u·v' except for rounding, so it is left out
        vectors = self._outputs.embed(texts, response=True)[0][first_indices(texts)]
        given, _ = as_texts(context)
        turns = given[-TURNS:]
        first = len(given) - len(turns)

        def place(at: int) -> str:
            return "the message" if at == len(turns) else f"turn {first + at} of the context"

        query = self._outputs.embed([*turns, *as_texts(input)[0]], adapted=False, place=place)[0]
        scores = dots(vectors, (with_turns(query) if turns else query)[0])
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
        if given is not None:
            matrix = as_unit_rows(given, self.dim)
        else:
            texts, _ = as_texts(corpus)
            matrix = self._vectors(texts)
            first = first_indices(texts)  # equal texts may differ in the last bit
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


TURNS = 5
"""Turns that are read; earlier ones say little about the reply."""
WEIGHT, DECAY = 0.3, 0.7
"""Weight of the turn before the message, which weighs 1; of each turn by that of the one after."""


def with_turns(rows: Embeddings) -> Embeddings:
    """Returns (1, D) float32, of length 1 or 0, from rows of the turns, the message last.

    Args:
        rows: (T + 1, D) float32, unit or zero rows, the oldest turn first.

    >>> bool(with_turns(np.eye(2, dtype=np.float32))[0, 1] > 0.9)
    True
    """
    back = np.arange(len(rows) - 1, -1, -1, dtype=np.float32)
    weights = np.where(back > 0, WEIGHT * DECAY ** (back - 1), 1).astype(np.float32)
    return unit_rows(weights[None] @ rows)
