"""The rows that words start training with, learned from the text of a run before its first step."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import torch
from torch import Tensor

from rejoinder.encoders import ENCODERS
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.training.config.loading import to_tree
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.examples import GroupText
from rejoinder.training.data.preparation import (
    Data,
    LabelledTasks,
    PreparationProgress,
    Prepared,
    WordRows,
    distinct_texts,
)
from rejoinder.training.data.stream import read_without
from rejoinder.training.objectives.paraphrase import ParaphraseTask
from rejoinder.training.rows.cooccurrence import Cooccurrences
from rejoinder.training.rows.retrofitting import FUNCTION_WORDS, links_of, retrofitted

_SEED = 0
"""Rows are learned from the data, as the vocabulary is: runs of several seeds share them."""
_MOST_PAIRS = 5_000_000
"""More pairs are sampled: word vectors gain little by them, and counts would outgrow memory."""


def learn_rows(
    config: RunConfig, data: Data, prepared: Prepared, progress: PreparationProgress
) -> WordRows | None:
    """Returns the rows of `training.row_init`, None if all rows are random."""
    if config.training.row_init == "random":
        return None
    features = prepared.features
    ranked = isinstance(features, WordFeatures)  # ids of subwords are in the order of merges
    words = len(features.vocabulary) if isinstance(features, WordFeatures) else features.rows
    counts = Cooccurrences(words, _SEED, ranked=ranked)
    labelled = data.labelled(config)
    for texts in _texts(config, data, labelled, prepared, progress):
        counts.add(features(texts))
    rows = counts.rows(_width(config, features))
    function_words = counts.most_frequent(FUNCTION_WORDS)
    links = [
        links_of(file.content, features(file.content.texts), len(rows), function_words)
        for task, files in labelled
        for file in files
        if isinstance(task, ParaphraseTask)
        and task.retrofit
        and isinstance(file.content, GroupText)
    ]
    return (retrofitted(rows, sum(links)) if links else rows).astype(np.float16)


@torch.no_grad()
def turn_rows(weight: Tensor, directions: Tensor) -> None:
    """Gives the first rows of `weight` the `directions` (N, width) and keeps their lengths.

    Rows whose direction is zero stay as they are.
    """
    known = directions.any(dim=1).nonzero().squeeze(1)
    lengths = weight[known].norm(dim=1, keepdim=True)
    weight[known] = directions[known].float() * lengths


def _width(config: RunConfig, features: TextFeatures) -> int:
    """Returns the width of the rows of the encoder's tokens."""
    kind = ENCODERS[config.encoder.kind]
    assert kind.token_rows is not None  # noqa: S101 -- `row_init` is idle for kinds without them
    shapes = kind.tensor_shapes(to_tree(config.encoder), features.config(), "")
    return shapes[kind.token_rows][1]


def _texts(
    config: RunConfig,
    data: Data,
    labelled: LabelledTasks,
    prepared: Prepared,
    progress: PreparationProgress,
) -> Iterator[pl.Series]:
    """Yields the texts that the run trains on: of many pairs, a sample."""
    yield from distinct_texts(labelled)
    blocks = list(enumerate(data.needed_pairs().blocks("train"))) if config.reads_pairs else []
    rows = sum(block.rows for _, block in blocks)
    sample = blocks[:: -(-rows // _MOST_PAIRS) or 1]
    done, total = 0, sum(block.rows for _, block in sample)
    for number, block in sample:
        frame = read_without(data.needed_pairs(), block, prepared.excluded.get(number))
        yield pl.concat([frame["input"], frame["response"]])
        done += block.rows
        progress(done, total)
