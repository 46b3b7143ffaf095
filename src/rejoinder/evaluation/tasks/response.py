"""`response/p@n`: is the true response among the first N of it and 99 random ones?"""

from collections.abc import Sequence

import numpy as np

from rejoinder.errors import DataMissingError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.intervals import mean_interval
from rejoinder.evaluation.metrics import Items
from rejoinder.evaluation.responses import (
    CUTOFFS,
    ResponsePairs,
    Tell,
    precision_name,
    precisions,
    ranked_responses,
)
from rejoinder.evaluation.results import Group, Scored
from rejoinder.evaluation.tasks import Context, Data, Family, Part
from rejoinder.protocols import EncodesResponses


def rank_responses(
    embedder: Embedder,
    pairs: ResponsePairs,
    *,
    seed: int = 0,
    tell: Tell = lambda _doing: None,
) -> Scored:
    """Returns P@1, P@3 and P@10 of the true response among 99 random ones, in all and by source.

    Ties count against the encoder. `seed` seeds the negatives and the interval.

    Raises:
        InputError: fewer than two pairs, or an embedding is not usable.
    """
    ranked = ranked_responses(embedder, pairs, seed=seed, tell=tell)
    rows, ranks, count = ranked.rows, ranked.ranks, ranked.candidates
    texts = np.unique([" ".join(text.split()) for text in pairs.responses], return_inverse=True)[1]
    same = int((texts[ranked.negatives] == texts[rows][:, None]).sum())
    notes = [f"{same} of {ranked.negatives.size} negatives repeat the right response's text"]
    if not isinstance(embedder.encoder, EncodesResponses):
        notes.append("the encoder has no encode_response; encode was used for both sides")
    sources = np.array(pairs.sources, dtype=object)[rows]
    return Scored(
        main=precision_name(1, count),
        scores=ranked.precisions,
        intervals={
            precision_name(n, count): mean_interval((ranks <= n).astype(np.float64), seed)
            for n in CUTOFFS
        },
        groups={
            str(source): Group(int(own.sum()), precisions(ranks[own], count))
            for source in sorted(set(sources))
            for own in [sources == source]
        },
        data={"name": "pairs", "candidates": count},
        notes=notes,
        items=Items(
            [f"{pairs.split}:{row}" for row in rows.tolist()],
            ranks.astype(np.float64),
            np.ones(len(rows)),
            [f"{pairs.inputs[row]} | {pairs.responses[row]}" for row in rows.tolist()],
        ),
    )


def _read(context: Context, ids: Sequence[str]) -> Data:
    if context.pairs is None:
        raise DataMissingError("the task response needs pairs; name their folder with `pairs`.")
    pairs = context.pairs()
    return {(ids[0], pairs.split): pairs}


def _run(embedder: Embedder, context: Context, _part: Part, pairs: ResponsePairs) -> Scored:
    embedder.prepare("response", [*pairs.inputs, *pairs.responses])
    return rank_responses(embedder, pairs, seed=context.seed, tell=context.tell)


FAMILIES = (Family({"response/p@n": ("response",)}, _read, _run, options=("pairs",)),)
