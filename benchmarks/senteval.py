"""Seconds that the classifiers of SentEval's tasks take, embeddings given.

    python benchmarks/senteval.py --data ../shared/data

Sets that are not there get random embeddings with planted labels in the published shapes, and are
named synthetic. Embeddings of the others: the mean of 300-dimensional normal vectors, one a token,
seeded by its SHA-256: anyone can rebuild them.
"""

import argparse
import hashlib
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataMissingError
from rejoinder.evaluation.classifiers.learners import ClassifierSettings
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks import Context, families_of, trained

DIM = 300
SHAPES: dict[str, tuple[str, tuple[int, ...], int, int]] = {
    "mr": ("nested", (10_662,), 2, DIM),
    "cr": ("nested", (3_775,), 2, DIM),
    "subj": ("nested", (10_000,), 2, DIM),
    "mpqa": ("nested", (10_606,), 2, DIM),
    "sst2": ("split", (67_349, 872, 1_821), 2, DIM),
    "sst5": ("split", (8_544, 1_101, 2_210), 5, DIM),
    "trec": ("kfold", (5_452, 500), 6, DIM),
    "mrpc": ("kfold", (4_076, 1_725), 2, 2 * DIM),
    "sick-e": ("split", (4_500, 500, 4_927), 3, 2 * DIM),
}
"""Protocol, rows of the splits, classes and features of each task, as published."""


class HashedWords:
    """The mean of a normal vector a token."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """(N, 300) float32."""
        return np.stack([self._mean(text.split()) for text in sentences])

    def _mean(self, words: list[str]) -> NDArray[np.float32]:
        if not words:
            return np.zeros(DIM, np.float32)
        mean: NDArray[np.float32] = np.mean([vector(word) for word in words], axis=0, dtype="f4")
        return mean


@cache
def vector(word: str) -> NDArray[np.float64]:
    """The vector of a token."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIM)


def planted(
    rows: int, classes: int, width: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Random embeddings whose classes a noisy linear map decides."""
    directions = np.random.default_rng(0).standard_normal((width, classes))
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((rows, width)).astype(np.float32) / width**0.5
    scores = features @ directions + 0.7 * generator.standard_normal((rows, classes))
    return features, scores.argmax(axis=1)


def synthetic(name: str, settings: ClassifierSettings) -> tuple[float, float]:
    """Seconds and accuracy on planted data of the published shape."""
    protocol, sizes, classes, width = SHAPES[name]
    parts = [planted(size, classes, width, seed) for seed, size in enumerate(sizes, 1)]
    begun = time.perf_counter()
    if protocol == "nested":
        outcome = trained.fitted_nested(*parts[0], settings)
    else:
        features, labels = zip(*parts, strict=True)
        outcome = trained.fitted_split(features, labels, settings)
    return time.perf_counter() - begun, outcome.test_accuracy


def real(name: str, context: Context, embedder: Embedder) -> tuple[float, float]:
    """Seconds and accuracy on the data itself, after everything has been embedded once."""
    [(family, ids)] = families_of([f"{name}/senteval"])
    [(part, data)] = family.read(context, ids).items()
    short = replace(context, classifiers=ClassifierSettings(kfold=2, noreg=True))
    family.run(embedder, short, part, data)
    begun = time.perf_counter()
    scored = family.run(embedder, context, part, data)
    return time.perf_counter() - begun, scored.scores["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--mode", default="fast")
    parser.add_argument("--pytorch", action="store_true")
    parser.add_argument("--tasks", default=",".join(SHAPES))
    args = parser.parse_args()
    settings = ClassifierSettings(mode=args.mode, usepytorch=args.pytorch)
    context = Context(data=args.data, classifiers=settings)
    embedder = Embedder(HashedWords())
    total = 0.0
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {settings}")
    for name in args.tasks.split(","):
        try:
            seconds, accuracy = real(name, context, embedder)
            kind = "real"
        except DataMissingError:
            seconds, accuracy = synthetic(name, settings)
            kind = "synthetic"
        total += seconds
        print(f"{name:8} {seconds:8.2f} s  accuracy {accuracy:6.2f}  {kind}", flush=True)
    print(f"together {total:8.2f} s")


if __name__ == "__main__":
    main()
