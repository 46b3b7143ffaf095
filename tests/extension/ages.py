"""A small evaluation task, as a user of the package writes one."""

import numpy as np

from rejoinder.evaluation.intervals import correlation_interval
from rejoinder.evaluation.items import Items
from rejoinder.evaluation.results import Result
from rejoinder.evaluation.tasks.base import Family
from rejoinder.files.hashed import sha256_of
from rejoinder.measures.correlation import pearson_correlation

PAIRS = [
    ("How old are you?", "What is your age?", 5.0),
    ("How old are you?", "Where do you live?", 1.0),
    ("Where do you live?", "I live in Oslo.", 3.0),
    ("What is your name?", "How old are you?", 1.5),
    ("Hello!", "Good morning!", 4.0),
    ("Do you like pizza?", "What is your age?", 0.0),
]
SHA256 = sha256_of(repr(PAIRS).encode())


def run(embedder, context, ids):
    first, second, gold = zip(*PAIRS, strict=True)
    u, v = (embedder.embed(list(side), "ages").astype(float) for side in (first, second))
    cosines, gold = (u * v).sum(axis=1), np.array(gold)
    score = pearson_correlation(cosines, gold)
    return [
        Result(
            task="ages/cosine",
            split="all",
            n=len(PAIRS),
            main="pearson",
            scores={"pearson": score},
            intervals={"pearson": correlation_interval(cosines, gold, context.seed)},
            groups={},
            seed=context.seed,
            data={"name": "ages", "sha256": SHA256},
            items=Items([str(row) for row in range(len(PAIRS))], cosines, gold, list(first)),
        )
    ]


def hashes(context, ids):
    return {("ages/cosine", "all"): SHA256}


AGES = Family({"ages/cosine": ("ages",)}, run, hashes)
