"""`response/p@n`: is the true response among the first N of it and 99 random ones?

Yang et al. 2018, §4.2, after Henderson et al. 2017. The negatives of an input are drawn
uniformly, without replacement, from all other responses of the split, whatever their source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataMissingError, InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.precision import CUTOFFS, precision_at, precision_name
from rejoinder.evaluation.results import Group, Result
from rejoinder.evaluation.tasks.base import Context, Family, Hashes
from rejoinder.protocols import Embeddings, EncodesResponses

NEGATIVES = 99
_GATHERED_VALUES = 262_144
"""Numbers of candidates that are gathered at once, 1 MB: they stay in the cache of a core."""
_LOOKED_AT = 1_000
"""Rows by which embeddings are held for sparse."""
_SPARSE = 1 / 16
_TELL_EVERY = 2_000
Tell = Callable[[str], None]
"""Called now and then with what is being done."""


@dataclass(frozen=True)
class ResponsePairs:
    """Messages with their replies: row i of `responses` answers row i of `inputs`."""

    split: str
    inputs: Sequence[str]
    responses: Sequence[str]
    sources: Sequence[str]
    sha256: str
    """Of the pairs that they are a split of."""

    def __len__(self) -> int:
        return len(self.inputs)


def rank_responses(
    embedder: Embedder,
    pairs: ResponsePairs,
    *,
    seed: int = 0,
    max_inputs: int | None = None,
    tell: Tell = lambda _doing: None,
) -> Result:
    """P@1, P@3 and P@10 of the true response among 99 random ones, over all and per source.

    An encoder with `encode_response` encodes responses with it, any other all with `encode`; the
    score is the dot product. Ties count against the model.

    Args:
        embedder: of anything that encodes.
        pairs: a split; all of its responses are candidates.
        seed: of the draw of negatives, of the sample of inputs and of the interval.
        max_inputs: rank so many inputs only, a sample.
        tell: told what is being done.

    Raises:
        InputError: fewer than two pairs, or an embedding is not usable.
    """
    count = len(pairs)
    if count < 2:
        raise InputError(
            f"response on {pairs.split}: {count} pairs; at least two are needed to choose from."
        )
    task = f"response on {pairs.split}"
    generator = np.random.default_rng(seed)
    chosen = np.arange(count)
    if max_inputs is not None and max_inputs < count:
        chosen = np.sort(generator.choice(count, max_inputs, replace=False))
    negatives = draw_negatives(chosen, count, min(NEGATIVES, count - 1), generator)
    headed = isinstance(embedder.encoder, EncodesResponses)
    tell(f"encoding {count + len(chosen):,} texts")
    texts = [pairs.inputs[row] for row in chosen.tolist()]
    if headed:
        inputs, input_rows = embedder.embed_distinct(texts, task)
        responses, response_rows = embedder.embed_responses(pairs.responses, task)
    else:
        inputs, rows = embedder.embed_distinct([*texts, *pairs.responses], task)
        responses, input_rows, response_rows = inputs, rows[: len(texts)], rows[len(texts) :]
    if inputs.shape[1] != responses.shape[1]:
        raise InputError(
            f"{embedder.who(task, 'encode_response')} returned vectors of {responses.shape[1]} "
            f"numbers, and encode of {inputs.shape[1]}; their dot product needs one width."
        )
    candidates = response_rows[np.column_stack([chosen, negatives])]
    ranks = true_ranks(inputs, input_rows, responses, candidates, tell)
    return _result(pairs, chosen, ranks, negatives, seed, headed)


def draw_negatives(
    rows: NDArray[np.int64], count: int, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """(len(rows), size) int64: for each row `size` different others of `count`, uniformly.

    From many, rows are drawn with replacement and redrawn where they repeat themselves: the same
    distribution as drawing without, at a hundredth of the cost, as long as repeats are rare.
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
    input_rows: NDArray[np.int64],
    responses: Embeddings,
    candidates: NDArray[np.int64],
    tell: Tell = lambda _doing: None,
) -> NDArray[np.int64]:
    """(N,) int64, from 1: the rank of the first candidate of each input among all of its own.

    Args:
        inputs: (M, D) float32.
        input_rows: (N,) the row of each input.
        responses: (L, D) float32.
        candidates: (N, K) rows of responses, the right one first.
        tell: told how far this is.
    """
    ranks = np.empty(len(input_rows), np.int64)
    # of bags of words, nearly all zeros, only the columns that the input has are read
    sparse = np.count_nonzero(inputs[:_LOOKED_AT]) < _SPARSE * inputs[:_LOOKED_AT].size
    size = 1 if sparse else _GATHERED_VALUES // (candidates.shape[1] * responses.shape[1])
    for start in range(0, len(ranks), max(1, size)):
        part = slice(start, start + max(1, size))
        vectors = inputs[input_rows[part]]  # (n, D)
        rows = candidates[part]
        # one loop for right and wrong alike: equal texts must get equal scores, to the bit
        if sparse:
            columns = np.flatnonzero(vectors[0])
            vectors = vectors[:, columns]
            gathered = responses[rows[..., None], columns]  # (1, K, columns)
        else:
            gathered = responses[rows]  # (n, K, D)
        scores = np.einsum("nkd,nd->nk", gathered, vectors)  # (n, K)
        ranks[part] = 1 + (scores[:, 1:] >= scores[:, :1]).sum(axis=1)
        if start % _TELL_EVERY < max(1, size):
            tell(f"ranked {start:,} of {len(ranks):,}")
    return ranks


def _result(
    pairs: ResponsePairs,
    rows: NDArray[np.int64],
    ranks: NDArray[np.int64],
    negatives: NDArray[np.int64],
    seed: int,
    has_head: bool,
) -> Result:
    candidates = negatives.shape[1] + 1
    names = [precision_name(n, candidates) for n in CUTOFFS]
    texts = np.unique([" ".join(text.split()) for text in pairs.responses], return_inverse=True)[1]
    same = int((texts[negatives] == texts[rows][:, None]).sum())
    sources = np.array(pairs.sources, dtype=object)[rows]
    groups = {
        str(source): Group(
            int((sources == source).sum()), _precisions(ranks[sources == source], names)
        )
        for source in sorted(set(sources))
    }
    notes = [f"{same} of {negatives.size} negatives repeat the right response's text"]
    if not has_head:
        notes.append("the encoder has no encode_response; encode was used for both sides")
    return Result(
        task="response/p@n",
        split=pairs.split,
        n=len(rows),
        main=names[0],
        scores=_precisions(ranks, names),
        intervals={
            name: mean_interval((ranks <= n).astype(np.float64), seed)
            for n, name in zip(CUTOFFS, names, strict=True)
        },
        groups=groups,
        seed=seed,
        data={"name": "pairs", "sha256": pairs.sha256, "candidates": candidates},
        notes=tuple(notes),
        items=Items(
            [f"{pairs.split}:{row}" for row in rows.tolist()],
            ranks.astype(np.float64),
            np.ones(len(rows)),
            [f"{pairs.inputs[row]} | {pairs.responses[row]}" for row in rows.tolist()],
        ),
    )


def _pairs(context: Context) -> ResponsePairs:
    if context.pairs is None:
        raise DataMissingError("the task response needs pairs; name their folder with --pairs.")
    return context.pairs()


def _run(embedder: Embedder, context: Context, _ids: Sequence[str]) -> list[Result]:
    pairs = _pairs(context)
    embedder.prepare("response", [*pairs.inputs, *pairs.responses])
    return [rank_responses(embedder, pairs, seed=context.seed, tell=context.tell)]


def _hashes(context: Context, ids: Sequence[str]) -> Hashes:
    pairs = _pairs(context)
    return {(ids[0], pairs.split): pairs.sha256}


def _precisions(ranks: NDArray[np.int64], names: Sequence[str]) -> dict[str, float]:
    return {name: precision_at(ranks, n) for n, name in zip(CUTOFFS, names, strict=True)}


FAMILIES = (Family({"response/p@n": ("response",)}, _run, _hashes),)
