"""Similarity, ranking, search and mining: the methods of `SentenceEncoder` that use embeddings.

`rank` reads a message together with the turns before it, as the weighted sum of their embeddings;
earlier turns weigh less. The weights were chosen on dev threads of six corpora
(notebook/context.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rejoinder.encoders.layers import Array, unit_rows
from rejoinder.errors import InputError
from rejoinder.inference import inputs
from rejoinder.inference.near_pairs import communities, nearest_pairs
from rejoinder.inference.neighbours import dots, nearest_rows
from rejoinder.inference.outputs import ModelOutputs
from rejoinder.io.files.system import default_workers
from rejoinder.measures import angular_similarity
from rejoinder.protocols import Embeddings

Measure = Literal["cosine", "angular"]
"""A similarity measure: the cosine, from -1 to 1, or -arccos of it, from -pi to 0."""


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

    Cosines may lie slightly outside [-1, 1] because of rounding.

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


class Comparisons:
    """Similarity, search, ranking and mining with a model's embeddings."""

    dim: int
    """Dimension D of the embeddings."""
    _outputs: ModelOutputs
    _threads: int | None
    """Number of CPU cores; None means all that the process may use."""

    def similarity(
        self,
        a: inputs.Sentences | Embeddings,
        b: inputs.Sentences | Embeddings,
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
        a: inputs.Sentences | Embeddings,
        b: inputs.Sentences | Embeddings,
        measure: Measure = "cosine",
    ) -> NDArray[np.float32]:
        """Returns (N,) float32, the similarity of row i of `a` with row i of `b`.

        Arguments and errors are the same as for `similarity`.

        Raises:
            InputError: also if `a` and `b` differ in number.
        """
        convert = measured(measure)
        left, right = self._vectors(a), self._vectors(b)
        if len(left) != len(right):
            raise InputError(
                f"a has {len(left)} rows and b {len(right)}; give as many of each. To compare all "
                "combinations, call similarity(a, b)."
            )
        return convert((left * right).sum(axis=1, dtype=np.float64))

    def rank(
        self,
        input: str,  # noqa: A002
        responses: inputs.Sentences,
        top_k: int | None = None,
        *,
        context: inputs.Sentences = (),
    ) -> list[Hit]:
        """Ranks responses by how well they answer `input` (the score u·v'), best first.

        Args:
            input: The message.
            responses: N responses.
            top_k: Number of responses to return. Default: all.
            context: The turns of the conversation before the message, oldest first. Only the last
                five are read; earlier turns weigh less.

        Returns:
            The best responses. Equal scores are ordered by index.

        Raises:
            InputError: `input`, a response or a turn is not a string, or `top_k` is not a whole
                number of at least 1.
        """
        if not isinstance(input, str):
            raise InputError(f"input must be one string; got a {type(input).__name__}.")
        if top_k is not None:
            top_k = inputs.whole_number("top_k", top_k)
        texts, _ = inputs.as_texts(responses)
        # the adaptation cancels out of u·v' except for rounding, so it is left out
        vectors = self._outputs.embed(texts, response=True, adapted=False)[0][
            inputs.first_indices(texts)
        ]
        given, _ = inputs.as_texts(context)
        turns = given[-TURNS:]
        first = len(given) - len(turns)

        def place(at: int) -> str:
            return "the message" if at == len(turns) else f"turn {first + at} of the context"

        query = self._outputs.embed(
            [*turns, *inputs.as_texts(input)[0]], adapted=False, place=place
        )[0]
        scores = dots(vectors, (with_turns(query) if turns else query)[0])
        order = np.argsort(-scores, kind="stable")[:top_k].tolist()
        return [Hit(index, float(scores[index]), texts[index]) for index in order]

    def search(
        self,
        queries: inputs.Sentences | Embeddings,
        corpus: inputs.Sentences | Embeddings,
        top_k: int = 10,
    ) -> list[list[Hit]]:
        """Finds, for each query, the `top_k` nearest of `corpus` by exact cosine, best first.

        Queries and corpus are sentences, or embeddings as returned by `encode`. If the corpus is
        embeddings, the `text` of hits is empty. A single string counts as one query. Equal scores
        are ordered by index. Memory use is bounded by the embeddings of the corpus.

        Raises:
            InputError: `top_k` is not a whole number of at least 1, or embeddings are not finite
                or of another dimension.
        """
        top_k = inputs.whole_number("top_k", top_k)  # before the corpus is encoded
        texts: list[str] | None = None
        given = inputs.as_matrix(corpus)
        if given is not None:
            matrix = inputs.as_unit_rows(given, self.dim)
        else:
            texts, _ = inputs.as_texts(corpus)
            matrix = self._vectors(texts)
            first = inputs.first_indices(texts)  # equal texts may differ in the last bit
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

    def paraphrase_mining(
        self,
        sentences: inputs.Sentences | Embeddings,
        *,
        top_k: int = 100,
        max_pairs: int = 500_000,
        show_progress_bar: bool = False,
    ) -> list[list[float | int]]:
        """Finds the pairs of sentences with the highest cosine.

        The result equals `sentence_transformers.util.paraphrase_mining`. All sentences are
        compared. Memory use is bounded by the embeddings and the pairs.

        Args:
            sentences: N sentences, or their embeddings.
            top_k: A pair counts if one of its sentences is among the `top_k` nearest of the other.
            max_pairs: Most pairs to return.
            show_progress_bar: Whether to draw a progress bar on standard error.

        Returns:
            `[score, i, j]` of each pair: the cosine and two indices, i < j. The best come first;
            equal scores are ordered by index.

        Raises:
            InputError: an argument is not valid, or embeddings are not finite or of another
                dimension.
        """
        top_k = inputs.whole_number("top_k", top_k)
        most = inputs.whole_number("max_pairs", max_pairs)
        show = inputs.flag("show_progress_bar", show_progress_bar)
        cores = self._threads or default_workers()
        return nearest_pairs(self._vectors(sentences), top_k, most, cores, show=show)

    def community_detection(
        self,
        sentences: inputs.Sentences | Embeddings,
        *,
        threshold: float = 0.75,
        min_community_size: int = 10,
        show_progress_bar: bool = False,
    ) -> list[list[int]]:
        """Finds groups of sentences that are all similar to a central sentence.

        The result equals `sentence_transformers.util.community_detection`. Each sentence is in at
        most one group. Memory use is bounded by the embeddings.

        Args:
            sentences: N sentences, or their embeddings.
            threshold: The least cosine with the central sentence, from -1 to 1.
            min_community_size: Fewest sentences in a community, at least 1.
            show_progress_bar: Whether to draw a progress bar on standard error.

        Returns:
            The indices of each community, largest community first. The central sentence comes
            first, the others follow by decreasing cosine.

        Raises:
            InputError: an argument is not valid, or embeddings are not finite or of another
                dimension.
        """
        least = inputs.whole_number("min_community_size", min_community_size)
        show = inputs.flag("show_progress_bar", show_progress_bar)
        number = isinstance(threshold, int | float | np.floating)
        if isinstance(threshold, bool) or not number or not -1 <= threshold <= 1:
            raise InputError(f"threshold must be a cosine, from -1 to 1; got {threshold!r}.")
        return communities(self._vectors(sentences), np.float32(threshold), least, show=show)

    def _vectors(self, values: inputs.Sentences | Embeddings) -> Embeddings:
        """Returns the embeddings of sentences, or given embeddings scaled to length 1."""
        matrix = inputs.as_matrix(values)
        if matrix is not None:
            return inputs.as_unit_rows(matrix, self.dim)
        return self._outputs.embed(inputs.as_texts(values)[0])[0]


TURNS = 5
"""Most turns that are read; earlier turns say little about the reply."""
WEIGHT, DECAY = 0.3, 0.7
"""Weight of the turn before the message, which weighs 1, and factor for each earlier turn."""


def with_turns(rows: Embeddings) -> Embeddings:
    """Returns a (1, D) float32 vector of length 1 or 0 for a message after its turns.

    Args:
        rows: (T + 1, D) float32, unit or zero rows, oldest turn first and the message last.

    >>> bool(with_turns(np.eye(2, dtype=np.float32))[0, 1] > 0.9)
    True
    """
    back = np.arange(len(rows) - 1, -1, -1, dtype=np.float32)
    weights = np.where(back > 0, WEIGHT * DECAY ** (back - 1), 1).astype(np.float32)
    return unit_rows(weights[None] @ rows)
