"""`stsb/angular` and `stsb/cosine`: correlation of similarities with gold, no training on them."""

from collections.abc import Callable

import numpy as np

from rejoinder.datasets.sts import GradedPairs
from rejoinder.evaluation.encoding import encode_checked
from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.metrics import (
    Array,
    angular_similarity,
    cosines,
    pearson_correlation,
    spearman_correlation,
)
from rejoinder.evaluation.results import Group, Result
from rejoinder.protocols import Encodes

MEASURES: dict[str, Callable[[Array], Array]] = {
    "angular": angular_similarity,
    "cosine": lambda cosine: cosine,
}


def score_stsb(encoder: Encodes, pairs: GradedPairs, *, seed: int = 0) -> list[Result]:
    """Pearson and Spearman of each measure with the gold scores, over all and per genre.

    Both measures rank alike: their Spearman correlations differ by ties that rounding breaks.

    Raises:
        InputError: an embedding is not usable, or a correlation is not defined.
    """
    task = f"stsb on {pairs.split}"
    embeddings = encode_checked(encoder.encode, [*pairs.first, *pairs.second], task)
    cosine, zeros = cosines(embeddings[: len(pairs)], embeddings[len(pairs) :])
    return [
        _result(name, measure(cosine), pairs, zeros, seed) for name, measure in MEASURES.items()
    ]


def _result(name: str, scores: Array, pairs: GradedPairs, zeros: int, seed: int) -> Result:
    genres = np.array(pairs.genres)
    groups = {}
    for genre in sorted(set(pairs.genres)):
        chosen = genres == genre
        groups[genre] = Group(int(chosen.sum()), _correlations(scores[chosen], pairs.gold[chosen]))
    notes = [f"the {pairs.form} form of the benchmark"]
    if zeros:
        notes.append(f"{zeros} pairs hold a zero vector; their cosine is 0")
    return Result(
        task=f"stsb/{name}",
        split=pairs.split,
        n=len(pairs),
        main="pearson",
        scores=_correlations(scores, pairs.gold),
        intervals={
            "pearson": correlation_interval(scores, pairs.gold, seed),
            "spearman": correlation_interval(scores, pairs.gold, seed, ranks=True),
        },
        groups=groups,
        seed=seed,
        data={"name": "STS Benchmark", "form": pairs.form, "sha256": pairs.sha256},
        notes=tuple(notes),
    )


def _correlations(scores: Array, gold: Array) -> dict[str, float]:
    return {
        "pearson": pearson_correlation(scores, gold),
        "spearman": spearman_correlation(scores, gold),
    }
