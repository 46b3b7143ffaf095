"""Ranks true responses: how high an encoder ranks the right one among 99 random ones.

Yang et al. 2018, §4.2, after Henderson et al. 2017. The negatives of an input are drawn uniformly,
without replacement, from all other responses of the split, of any source. Training chooses
weights by these ranks; the task `response` reports them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.measures import Indices
from rejoinder.protocols import Embeddings, EncodesResponses

CUTOFFS = (1, 3, 10)
"""N of each P@N in a result."""
USUAL_CANDIDATES = 100
"""K of the usual P@N; another number of candidates becomes part of the name."""
NEGATIVES = USUAL_CANDIDATES - 1
_GATHERED_VALUES = 262_144
"""Number of candidate values that are gathered at once: 1 MB fits in the cache of a core."""
_SAMPLED = 1_000
"""Number of embeddings that are checked to decide whether embeddings are sparse."""
_SPARSE = 1 / 16
"""Share of non-zero numbers below which embeddings are sparse."""
_TELL_EVERY = 2_000
Tell = Callable[[str], None]
"""Called from time to time with the current step."""


@dataclass(frozen=True)
class ResponsePairs:
    """Pairs of a split: row i of `responses` is the response to row i of `inputs`."""

    split: str
    inputs: Sequence[str]
    responses: Sequence[str]
    sources: Sequence[str]
    sha256: str
    """Hash of the folder of pairs."""

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class Ranked:
    """Ranks of the true responses of pairs among their candidates."""

    ranks: Indices
    """(N,) ranks of the true responses, from 1. Ties count against the encoder."""
    negatives: Indices
    """(N, K) rows of the other candidates."""

    @property
    def candidates(self) -> int:
        """Number of candidates per input, including the true response."""
        return 1 + len(self.negatives.T)

    @property
    def precisions(self) -> dict[str, float]:
        """P@1, P@3 and P@10 by name."""
        return precisions(self.ranks, self.candidates)


def precision_name(n: int, candidates: int) -> str:
    """Returns the name of a score.

    >>> precision_name(1, 100), precision_name(3, 40)
    ('P@1', 'P@3 of 40')
    """
    return f"P@{n}" if candidates == USUAL_CANDIDATES else f"P@{n} of {candidates}"


def precisions(ranks: Indices, candidates: int) -> dict[str, float]:
    """Returns P@1, P@3 and P@10 of (N,) ranks among this many candidates, by name."""
    return {precision_name(n, candidates): float((ranks <= n).mean()) for n in CUTOFFS}


def ranked_responses(
    embedder: Embedder,
    pairs: ResponsePairs,
    *,
    seed: int = 0,
    max_inputs: int | None = None,
    tell: Tell = lambda _doing: None,
) -> Ranked:
    """Returns the ranks of the true responses among 99 random ones each.

    Candidates are ranked by the dot product. Responses are encoded with `encode_response` if the
    encoder has it, else with `encode`. If there are more than `max_inputs`, inputs are sampled.
    `seed` seeds the sample and the negatives.

    Raises:
        InputError: fewer than two pairs, or an embedding is not usable.
    """
    count, task = len(pairs), f"response on {pairs.split}"
    if count < 2:
        raise InputError(f"{task}: {count} pairs; at least two are needed to choose from.")
    generator = np.random.default_rng(seed)
    chosen = np.arange(count)
    if max_inputs is not None and max_inputs < count:
        chosen = np.sort(generator.choice(count, max_inputs, replace=False))
    negatives = draw_negatives(chosen, count, min(NEGATIVES, count - 1), generator)
    tell(f"encoding {count + len(chosen):,} texts")
    texts = [pairs.inputs[row] for row in chosen.tolist()]
    if isinstance(embedder.encoder, EncodesResponses):
        inputs, input_rows = embedder.embed_distinct(texts, task)
        responses, response_rows = embedder.embed_responses(pairs.responses, task)
    else:
        inputs, rows = embedder.embed_distinct([*texts, *pairs.responses], task)
        responses, input_rows, response_rows = inputs, rows[: len(texts)], rows[len(texts) :]
    if inputs.shape[1] != responses.shape[1]:
        who = embedder.who(task, "encode_response")
        widths = f"of {responses.shape[1]} numbers, and encode of {inputs.shape[1]}"
        raise InputError(f"{who} returned vectors {widths}; their dot product needs one width.")
    candidates = response_rows[np.column_stack([chosen, negatives])]
    ranks = true_ranks(inputs, input_rows, responses, candidates, tell)
    return Ranked(ranks, negatives)


def recall_of_all(embedder: Embedder, pairs: ResponsePairs, top: int) -> float:
    """Returns the share of inputs whose response is among the best `top` of all responses.

    Ties count against the encoder; equal texts are one response.
    """
    task = f"response on {pairs.split}"
    inputs, input_rows = embedder.embed_distinct(list(pairs.inputs), task)
    responses, rows = embedder.embed_responses(list(pairs.responses), task)
    found = 0
    for start in range(0, len(pairs), _TELL_EVERY):
        part = slice(start, start + _TELL_EVERY)
        scores = inputs[input_rows[part]] @ responses.T
        true = scores[np.arange(len(scores)), rows[part]]
        found += int(((scores >= true[:, None]).sum(axis=1) <= top).sum())
    return found / len(pairs)


def draw_negatives(rows: Indices, count: int, size: int, generator: np.random.Generator) -> Indices:
    """Returns (N, size) indices: different others of `count` rows for each of N rows, uniformly.

    If repeats are rare, rows are drawn with replacement, and repeated ones are drawn again. This
    has the same distribution as drawing without replacement, at a hundredth of the cost.
    """
    if size == count - 1:
        others = np.arange(1, count)
        return (rows[:, None] + others) % count
    if size * size > 2 * count:
        drawn = np.stack([generator.permutation(count - 1)[:size] for _ in rows])
    else:
        drawn = generator.integers(0, count - 1, (len(rows), size))
        while len(bad := np.flatnonzero((np.diff(np.sort(drawn, axis=1)) == 0).any(axis=1))):
            drawn[bad] = generator.integers(0, count - 1, (len(bad), size))
    return (rows[:, None] + 1 + drawn) % count


def true_ranks(
    inputs: Embeddings,
    input_rows: Indices,
    responses: Embeddings,
    candidates: Indices,
    tell: Tell = lambda _doing: None,
) -> Indices:
    """Returns (N,) int64 ranks, from 1, of the first candidate of each input among its candidates.

    `input_rows` are (N,) rows of the (M, D) `inputs`, and `candidates` are (N, K) rows of the
    (L, D) `responses`, the true one first.
    """
    ranks = np.empty(len(input_rows), np.int64)
    # bag-of-words vectors are nearly all zeros: only the columns of the input's words are read
    sparse = np.count_nonzero(inputs[:_SAMPLED]) < _SPARSE * inputs[:_SAMPLED].size
    values = candidates.shape[1] * responses.shape[1]
    size = 1 if sparse else max(1, _GATHERED_VALUES // values)
    for start in range(0, len(ranks), size):
        part = slice(start, start + size)
        vectors = inputs[input_rows[part]]  # (n, D)
        rows = candidates[part]
        # the true response is scored with the others: equal texts must get equal scores, to the bit
        if sparse:
            columns = np.flatnonzero(vectors[0])
            vectors = vectors[:, columns]
            gathered = responses[rows[..., None], columns]  # (1, K, columns)
        else:
            gathered = responses[rows]  # (n, K, D)
        scores = np.einsum("nkd,nd->nk", gathered, vectors)  # (n, K)
        ranks[part] = 1 + (scores[:, 1:] >= scores[:, :1]).sum(axis=1)
        if start % _TELL_EVERY < size:
            tell(f"ranked {start:,} of {len(ranks):,}")
    return ranks
