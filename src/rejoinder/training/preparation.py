"""Preparation of a run: its vocabulary, its labelled files, and the leaks that it leaves out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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

PreparationProgress = Callable[[int, int], None]
"""Called with the number of pairs read so far and the number of all pairs."""


@dataclass(frozen=True)
class Data:
    """The data that a run reads.

    Labelled files are read once for all tasks that read them in the same way, and stay in memory
    until `forget_labelled`: training does not read again what preparation has read.
    """

    pairs: Pairs | None = None
    """Read by the task `responses`; None if no task needs pairs."""
    folder: Path | None = None
    """The folder that the paths of labelled files start from."""
    _labelled: dict[tuple[str, ...], LabelledFiles] = field(
        default_factory=dict, repr=False, compare=False
    )

    def labelled(self, config: RunConfig) -> list[tuple[Task, list[Labelled]]]:
        """Returns the labelled files of each task, without their leaks.

        Raises:
            InputError: a task needs a folder and there is none, or a file can't be used.
        """
        hashes = evaluation_hashes(config)
        sets = () if hashes is None else hashes.sets
        files = self._labelled.setdefault(sets, LabelledFiles(self.folder, hashes))
        return [(task, files.of(task)) for task in config.mixture]

    def forget_labelled(self) -> None:
        """Frees the memory of the labelled files; they are read again when asked for."""
        self._labelled.clear()


@dataclass(frozen=True)
class Prepared:
    """What training needs to know about its text."""

    features: TextFeatures
    excluded: dict[int, NDArray[np.int64]]
    """Indices of the pairs left out as leaks, by block number; blocks without leaks are absent."""
    pairs: int
    """Number of pairs in the train split, including those left out."""
    leaks: int
    """Number of pairs left out."""
    labelled: dict[str, dict[str, Any]]
    """For each labelled file, by path: its SHA-256, rows by task, and the rows left out."""


def evaluation_hashes(config: RunConfig) -> EvaluationHashes | None:
    """Returns the sentences that must not be trained on, None if the config allows all.

    Raises:
        InputError: the config names an unknown evaluation set.
    """
    training = config.training
    return EvaluationHashes.load(training.leak_sets) if training.exclude_leaks else None


def prepare(
    data: Data, config: RunConfig, progress: PreparationProgress, features: TextFeatures | None
) -> Prepared:
    """Learns the vocabulary and finds the leaks, in one pass over the train split.

    Args:
        data: the data of the run.
        config: the config of the run.
        progress: called after each block of pairs.
        features: the features of the model that training starts from; None to learn a vocabulary.

    Raises:
        InputError: no word is frequent enough, or data is missing or unusable.
    """
    pairs = data.pairs if config.reads_pairs else None
    if pairs is None and config.reads_pairs:
        raise InputError("the task responses reads pairs; name their folder with --pairs.")
    blocks = [] if pairs is None else pairs.blocks("train")
    total = sum(block.rows for block in blocks)
    excluded: dict[int, NDArray[np.int64]] = {}
    tasks = data.labelled(config)
    # the text of a file that two tasks read is counted once
    labelled = {file.name: file for _, files in tasks for file in files}

    def texts() -> Iterator[pl.Series]:
        for file in labelled.values():
            yield pl.Series(file.content.texts, dtype=pl.String)
        done, hashes = 0, evaluation_hashes(config)
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
        for _ in texts():  # read for the leaks alone
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
