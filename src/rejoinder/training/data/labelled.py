"""Labelled files as endless streams of batches.

A file is read whole: the largest, SNLI, has half a million rows. Each different text is turned into
ids once. The order of the rows follows from the seed, the file and the epoch, so a position is two
numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.datasets.leaks.hashes import EvaluationHashes
from rejoinder.errors import InputError
from rejoinder.io.files.hashed import sha256_number
from rejoinder.text.features import TextFeatures
from rejoinder.training.config.tasks import Task
from rejoinder.training.data.batches import WHOLE, Batch, BatchSize, Part, Position, drop_ids
from rejoinder.training.data.examples import Examples, Indices, LabelledText
from rejoinder.training.data.stream import text_keys
from rejoinder.training.objectives import OBJECTIVES


@dataclass(frozen=True)
class Labelled:
    """A file of a task, read and checked."""

    name: str
    """Its path in the config."""
    content: LabelledText
    examples: Examples


def read_labelled(
    task: Task,
    folder: Path | None,
    hashes: EvaluationHashes | None,
    known: dict[str, LabelledText],
) -> list[Labelled]:
    """Returns the files of a task, which are below `folder`, without the sentences in `hashes`.

    A file is not read again if it is in `known`, to which every file is added.

    Raises:
        InputError: no folder is given, a file is missing or has another format, or too little is
            left of it.
    """
    kind = OBJECTIVES[task.objective]
    labelled = []
    for file in task.data:
        assert kind.read is not None and kind.examples is not None  # noqa: S101, PT018 -- it has data
        if folder is None:
            raise InputError(
                f"the task {task.objective} reads {file.path}; give its folder with `data`."
            )
        path = folder / file.path
        sets = "" if hashes is None else hashes.name
        key = f"{kind.read.__module__}.{kind.read.__qualname__} {sets} {file.model_dump_json()}"
        if key not in known:
            known[key] = kind.read(file, path, hashes)
        content = known[key]
        examples = kind.examples(task, content)
        if len(examples) < 2:
            raise InputError(
                f"{path} leaves {len(examples)} rows for {task.objective}: {content.leaks} contain "
                f"an evaluation sentence, {content.unlabelled} have no label in use; at least 2 "
                "are needed."
            )
        labelled.append(Labelled(file.path, content, examples))
    return labelled


class LabelledStream:
    """The examples of a file as endless batches, from any position on."""

    def __init__(
        self,
        labelled: Labelled,
        features: TextFeatures,
        *,
        seed: int,
        word_dropout: float = 0.0,
        part: Part = WHOLE,
    ) -> None:
        """Turns the texts into ids. Batches hold the sentences of `part`."""
        self.name = labelled.name
        self.rows = len(labelled.examples)
        self._examples = labelled.examples
        texts = pl.Series(labelled.content.texts, dtype=pl.String)
        self._sentences, self._keys = features(texts), text_keys(texts)
        self._seed = (seed, sha256_number(labelled.name.encode(), 4))
        self._word_dropout, self._part = word_dropout, part

    def batches(self, start: Position, size: BatchSize) -> Iterator[Batch]:
        """Yields batches without end from `start`.

        A file smaller than a batch yields all its rows each time. Rows at the end of an epoch that
        do not fill a batch are left out.
        """
        position = start
        while True:
            order = self._generator(position.epoch, 0).permutation(self.rows)
            while (count := min(size(), self.rows)) <= self.rows - position.offset:
                chosen = order[position.offset : position.offset + count]
                after = Position(position.epoch, 0, position.offset + count)
                generator = self._generator(position.epoch, 1 + position.offset)
                yield self._batch(chosen, generator, after)
                position = after
            position = Position(position.epoch + 1)

    def _batch(self, chosen: Indices, generator: np.random.Generator, after: Position) -> Batch:
        picked = self._examples.pick(chosen, generator)  # the same in all parts
        sides = (
            side[self._part.of(len(side))] for side in (picked.left, picked.right, picked.more)
        )
        sentences = self._sentences.take(np.concatenate(list(sides)))
        if self._word_dropout:
            if self._part.count > 1:
                numbers = (after.epoch, 1 + after.offset, *self._part.seed())
                generator = self._generator(*numbers)
            sentences = drop_ids(sentences, self._word_dropout, generator)
        keys = self._keys[picked.left], self._keys[picked.right]
        return Batch(sentences, *keys, after, picked.labels, self._part)

    def _generator(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([*self._seed, *numbers])
