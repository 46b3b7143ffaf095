"""What must be known before the first step: the words, the labelled files, what is left out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rejoinder.corpus.shards import Pairs
from rejoinder.errors import InputError
from rejoinder.leaks import EvaluationHashes
from rejoinder.text.features import TextFeatures, WordFeatures
from rejoinder.text.vocabulary import learn_vocabulary
from rejoinder.training.labelled import Labelled, LabelledFiles
from rejoinder.training.settings import RunConfig
from rejoinder.training.tasks.base import Task

Progress = Callable[[int, int], None]
"""Called with pairs done and pairs in all."""


@dataclass(frozen=True)
class Data:
    """Where a run reads from."""

    pairs: Pairs | None = None
    """What `responses` reads; none where no task is that."""
    folder: Path | None = None
    """What the paths of labelled files are below."""


@dataclass(frozen=True)
class Prepared:
    """What training needs to know of its text."""

    features: TextFeatures
    excluded: dict[int, NDArray[np.int64]]
    """Rows of the pairs left out as leaks, by block number; blocks without any are absent."""
    pairs: int
    """Pairs of the train split, those left out included."""
    leaks: int
    """Pairs left out."""
    labelled: dict[str, dict[str, Any]]
    """Of each labelled file, by its path: SHA-256, rows by task, what was left out."""


def evaluation_hashes(config: RunConfig) -> EvaluationHashes | None:
    """The sentences that may not be trained on; none where the config does not ask.

    Raises:
        InputError: a set is unknown.
    """
    training = config.training
    return EvaluationHashes.load(training.leak_sets) if training.exclude_leaks else None


def read_tasks(config: RunConfig, data: Data) -> list[tuple[Task, list[Labelled]]]:
    """The labelled files of each task, without their leaks.

    Raises:
        InputError: no folder is named, or a file can't be used.
    """
    files = LabelledFiles(data.folder, evaluation_hashes(config))
    return [(task, files.of(task)) for task in config.mixture]


def prepare(
    data: Data, config: RunConfig, progress: Progress, features: TextFeatures | None = None
) -> Prepared:
    """Learn the vocabulary and find the leaks, in one pass over the train split.

    Args:
        data: what is read.
        config: of the run.
        progress: told how far it is.
        features: those of the model that training starts from; none: they are learned.

    Raises:
        InputError: no word is frequent enough, or data is missing.
    """
    if config.reads_pairs and data.pairs is None:
        raise InputError("the task responses reads pairs; name their folder with --pairs.")
    hashes = evaluation_hashes(config)
    excluded: dict[int, NDArray[np.int64]] = {}
    pairs = data.pairs if config.reads_pairs else None
    blocks = pairs.blocks("train") if pairs is not None else []
    total = sum(block.rows for block in blocks)
    tasks = read_tasks(config, data)
    # a file that two tasks read is text once
    labelled = {file.name: file for _, files in tasks for file in files}

    def texts() -> Iterator[pl.Series]:
        for file in labelled.values():
            yield pl.Series(file.content.texts, dtype=pl.String)
        done = 0
        for number, block in enumerate(blocks):
            frame = pairs.read(block, ["input", "response"])  # type: ignore[union-attr]
            inputs, responses = frame.get_column("input"), frame.get_column("response")
            if hashes is not None:
                leaked = np.flatnonzero(hashes.contains(inputs) | hashes.contains(responses))
                if len(leaked):
                    excluded[number] = leaked
            yield pl.concat([inputs, responses])
            done += block.rows
            progress(done, total)

    if features is None:
        features = _features(texts(), config)
    else:
        for _ in texts():  # the leaks are still to be found
            pass
    facts = {name: _facts(file) for name, file in labelled.items()}
    for task, files in tasks:
        for file in files:
            facts[file.name]["rows"][task.label] = len(file.examples)
    return Prepared(features, excluded, total, sum(map(len, excluded.values())), facts)


def _facts(file: Labelled) -> dict[str, Any]:
    return {
        "sha256": file.content.sha256,
        "rows": {},
        "leaks": file.content.leaks,
        "unlabelled": file.content.unlabelled,
    }


def _features(texts: Iterator[pl.Series], config: RunConfig) -> TextFeatures:
    text = config.text
    if text.kind == "subwords":
        from rejoinder.text.subwords import learn_subwords

        return learn_subwords(
            texts, size=text.max_words, min_count=text.min_count, max_tokens=text.max_tokens
        )
    vocabulary, _ = learn_vocabulary(texts, max_words=text.max_words, min_count=text.min_count)
    return WordFeatures(vocabulary, text.bigram_buckets, text.unknown_buckets)
