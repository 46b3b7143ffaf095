"""The one pass over the train split before the first step: the words, and what must be left out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import Pairs
from rejoinder.leaks import EvaluationHashes
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.vocabulary import learn_vocabulary
from rejoinder.training.settings import RunConfig

Progress = Callable[[int, int], None]
"""Called with pairs done and pairs in all."""


@dataclass(frozen=True)
class Prepared:
    """What training needs to know of its text."""

    features: TextFeatures
    excluded: dict[int, NDArray[np.int64]]
    """Rows left out as leaks, by block number; blocks without any are absent."""
    pairs: int
    """Pairs of the train split, those left out included."""
    leaks: int
    """Pairs left out."""


def prepare(pairs: Pairs, config: RunConfig, progress: Progress) -> Prepared:
    """Learn the vocabulary and find the leaks, in one pass over the train split.

    Raises:
        InputError: no word is frequent enough.
    """
    hashes = (
        EvaluationHashes.load(config.training.leak_sets) if config.training.exclude_leaks else None
    )
    excluded: dict[int, NDArray[np.int64]] = {}
    blocks = pairs.blocks("train")
    total = sum(block.rows for block in blocks)

    def texts() -> Iterator[pl.Series]:
        done = 0
        for number, block in enumerate(blocks):
            frame = pairs.read(block, ["input", "response"])
            inputs, responses = frame.get_column("input"), frame.get_column("response")
            if hashes is not None:
                leaked = np.flatnonzero(hashes.contains(inputs) | hashes.contains(responses))
                if len(leaked):
                    excluded[number] = leaked
            yield pl.concat([inputs, responses])
            done += block.rows
            progress(done, total)

    features = _features(texts(), config)
    return Prepared(features, excluded, total, sum(map(len, excluded.values())))


def _features(texts: Iterator[pl.Series], config: RunConfig) -> TextFeatures:
    text = config.text
    if text.kind == "subwords":
        from rejoinder.text.subwords import learn_subwords

        return learn_subwords(
            texts, size=text.max_words, min_count=text.min_count, max_tokens=text.max_tokens
        )
    vocabulary, _ = learn_vocabulary(texts, max_words=text.max_words, min_count=text.min_count)
    return WordFeatures(vocabulary, text.bigram_buckets)
