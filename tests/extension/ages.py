"""A small evaluation task with its own metric, as a user of the package writes them."""

from dataclasses import dataclass

import numpy as np

from rejoinder.evaluation.metrics import Metric, compare_means
from rejoinder.evaluation.results import Items, Scored
from rejoinder.evaluation.tasks import Family
from rejoinder.io.files.hashed import sha256_of

PAIRS = [
    ("How old are you?", "What is your age?", 5.0),
    ("How old are you?", "Where do you live?", 1.0),
    ("Where do you live?", "I live in Oslo.", 3.0),
    ("What is your name?", "How old are you?", 1.5),
    ("Hello!", "Good morning!", 4.0),
    ("Do you like pizza?", "What is your age?", 0.0),
]


@dataclass(frozen=True)
class Ages:
    pairs: list
    sha256: str


def absolute_errors(items):
    """Distances of cosines from labels of 0 to 5, as shares of the largest label."""
    return np.abs(items.predictions - items.gold / 5)


def mean_error_share(items):
    return {"mean_error_share": float(absolute_errors(items).mean())}


def compare_errors(first, second, seed, draws):
    return compare_means(absolute_errors(first), absolute_errors(second), seed, draws)


ERROR = Metric(
    name="mean_error_share",
    recompute=mean_error_share,
    errors=absolute_errors,
    test=compare_errors,
    higher_is_better=False,
)


def read(context, ids):
    return {("ages/cosine", "all"): Ages(PAIRS, sha256_of(repr(PAIRS).encode()))}


def run(embedder, context, part, ages):
    first, second, gold = zip(*ages.pairs, strict=True)
    u, v = (embedder.embed(list(side), "ages").astype(float) for side in (first, second))
    cosines, gold = (u * v).sum(axis=1), np.array(gold)
    items = Items([str(row) for row in range(len(gold))], cosines, gold, list(first))
    return Scored(ERROR.name, mean_error_share(items), items, data={"name": "ages"})


AGES = Family({"ages/cosine": ("ages",)}, read, run)
